//! Probes about devices, and the runs that they vouch for. Each plays against a gateway that is served on a
//! loopback port, with real signatures, over logs that the guard wrote.

mod attesting;
mod enrolment;
mod grading;
mod moving;

use std::future::Future;

use lodestar_core::execution::ExecutionLevel;
use lodestar_gateway::client::GatewayError;
use lodestar_gateway::code::Code;
use lodestar_gateway::wire;

use crate::probe::{Broken, Outcome, Probe, hold};
use crate::stage::Stage;
use crate::world::fleet::{Account, Fleet, Machine, Made};

pub(super) fn probes() -> Vec<Probe> {
    [
        enrolment::probes(),
        moving::probes(),
        attesting::probes(),
        grading::probes(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Plays a scenario with a gateway.
fn play<F: Future<Output = Outcome>>(stage: &Stage, scenario: impl FnOnce(Fleet) -> F) -> Outcome {
    stage.block_on(async {
        let fleet = Fleet::open(stage.folder(), stage.without()).await?;
        scenario(fleet).await
    })?
}

/// Somebody with a trusted machine.
struct Trusted {
    account: Account,
    made: Made,
    machine: Machine,
}

impl Trusted {
    async fn of(fleet: &Fleet, name: &str) -> Outcome<Self> {
        let account = fleet.account(name).await?;
        let made = account.made().await?;
        let machine = account.trusted("machine", made).await?;
        Ok(Self {
            account,
            made,
            machine,
        })
    }
}

/// That a request was refused, and why.
fn refused<T>(answer: Result<T, GatewayError>, code: Code, what: &str) -> Outcome {
    match answer {
        Err(GatewayError::Refused { code: found, .. }) => hold(found == code, || {
            format!("{what} is refused as `{found}`, not as `{code}`")
        }),
        Err(problem) => Err(Broken::Failed(format!("{what}: {problem}"))),
        Ok(_) => Err(Broken::Breached(format!("{what} is accepted"))),
    }
}

/// That a run came to no more than this.
fn no_more(attested: &wire::Attested, most: ExecutionLevel, what: &str) -> Outcome {
    let level = attested.level;
    hold(level <= most, || format!("{what} is graded {level}"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::runner::{Options, Status, run};

    /// These need no program: the gateway and the guard are in this process.
    #[test]
    fn each_holds_and_is_breached_without_its_defence() {
        let options = Options {
            program: Path::new("lodestar"),
            database: None,
            jobs: 2,
        };
        let report = run(&super::probes(), &options, |probe| {
            let (name, ms) = (&probe.header.name, probe.ms);
            println!("{} {name} {ms} ms: {:?}", probe.status, probe.reason);
        });
        assert_eq!(report.probes.len(), 11);
        let is_pass = |status| status == Status::Pass;
        assert!(report.probes.iter().all(|probe| is_pass(probe.status)));
    }
}

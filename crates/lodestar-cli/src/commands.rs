//! One module per command.

mod agent;
mod approve;
mod belief;
mod completions;
mod confirm;
mod demo;
mod demo_server;
mod device;
mod doctor;
mod gateway;
mod guard;
mod halt;
mod harness;
pub(crate) mod hook;
mod import;
mod init;
mod log;
mod man;
mod otel;
mod pack;
mod platform;
mod policy;
mod probe_proxy;
mod probe_server;
mod probe_show;
mod reflect;
mod replay;
mod report;
mod run;
mod runner;
mod store;
mod submission;
mod token;
mod tools;
mod undo;

use clap::Subcommand;
use lodestar_core::time::Timestamp;
use lodestar_firewall::event::Surroundings as _;
use lodestar_guard::SystemSurroundings;
use lodestar_guard::config::Ceiling;

use crate::cli::App;
use crate::failure::{Exit, Failure};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// See a poisoned file meet an agent behind the proxy, and what the log proves of it
    Demo(demo::DemoArgs),
    /// Serve one of the demonstration's MCP servers
    #[command(hide = true)]
    DemoServer(demo_server::DemoServerArgs),
    /// Serve a scratch project with a defence taken out
    #[command(hide = true)]
    ProbeProxy(probe_proxy::ProbeProxyArgs),
    /// Serve a scripted MCP server
    #[command(hide = true)]
    ProbeServer(probe_server::ProbeServerArgs),
    /// Show a card of a scratch project with a defence taken out
    #[command(hide = true)]
    ProbeShow(probe_show::ProbeShowArgs),
    /// Write a first configuration out of a client's, and the way into the client
    Init(init::InitArgs),
    /// See what is enforced here, and what is not
    Doctor(doctor::DoctorArgs),
    /// Run an agent in a governed session
    Guard(guard::GuardArgs),
    /// Govern the built-in tools of clients, through their hooks
    Hook(hook::HookArgs),
    /// Look at, check, sign and test the policy
    Policy(policy::PolicyArgs),
    /// Look at the tools, and grade them
    Tools(tools::ToolsArgs),
    /// Stop a session: nothing further runs in it
    Halt(halt::HaltArgs),
    /// Put back what an act wrote over
    Undo(undo::UndoArgs),
    /// Derive a session again from its log, verdict by verdict
    Replay(replay::ReplayArgs),
    /// Tell what a session comes to, with the events that prove it
    Report(report::ReportArgs),
    /// Look at, verify and prove the event log
    Log(log::LogArgs),
    /// Hand sessions to OpenTelemetry
    Otel(otel::OtelArgs),
    /// Look at beliefs, and move them as an operator
    Belief(belief::BeliefArgs),
    /// Look back on a session: which decisions and beliefs to look at again
    Reflect(reflect::ReflectArgs),
    /// Take in the memories of another system, as unverified
    Import(import::ImportArgs),
    /// Check the belief store, or make it again from the log
    Store(store::StoreArgs),
    /// Approve actions as an operator
    Approve(approve::ApproveArgs),
    /// Say as an operator, before it is asked for, that one act is wanted, or not
    Confirm(confirm::ConfirmArgs),
    /// Run the executable threat model, and measure how well confidence is borne out
    Harness(harness::HarnessArgs),
    /// Run one probe, and say what it shows
    Probe(harness::ProbeArgs),
    /// Make, check, sign and verify outside packs of probes
    Pack(pack::PackArgs),
    /// Serve a gateway, or check that this device gets on with one
    Gateway(gateway::GatewayArgs),
    /// Enrol, approve and watch the machines that runs are made on
    Device(device::DeviceArgs),
    /// Name the agents in whose name runs are made
    Agent(agent::AgentArgs),
    /// Name what makes runs, and bind it to devices
    Runner(runner::RunnerArgs),
    /// Start an agent in a sandbox (`run -- COMMAND`); or register, attest and look at runs
    Run(run::RunArgs),
    /// Make, keep and take back what is shown to a gateway
    Token(token::TokenArgs),
    /// Hand in work, and see what it earned
    Submission(submission::SubmissionArgs),
    /// Open accounts, block devices and stop all signing, where the gateway runs
    Platform(platform::PlatformArgs),
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
    /// Write the man pages into a directory
    Man(man::ManArgs),
}

pub(crate) fn run(command: Command, app: &mut App) -> Result<Exit, Failure> {
    match command {
        Command::Demo(args) => demo::run(&args, app),
        Command::DemoServer(args) => demo_server::run(args),
        Command::ProbeProxy(args) => probe_proxy::run(&args),
        Command::ProbeServer(args) => probe_server::run(&args),
        Command::ProbeShow(args) => probe_show::run(&args, app),
        Command::Init(args) => init::run(&args, app),
        Command::Doctor(args) => doctor::run(&args, app),
        Command::Guard(args) => guard::run(&args, app),
        Command::Hook(args) => hook::run(&args, app),
        Command::Policy(args) => policy::run(&args, app),
        Command::Tools(args) => tools::run(&args, app),
        Command::Halt(args) => halt::run(&args, app),
        Command::Undo(args) => undo::run(&args, app),
        Command::Replay(args) => replay::run(&args, app),
        Command::Report(args) => report::run(&args, app),
        Command::Log(args) => log::run(&args, app),
        Command::Otel(args) => otel::run(&args, app),
        Command::Belief(args) => belief::run(&args, app),
        Command::Reflect(args) => reflect::run(&args, app),
        Command::Import(args) => import::run(&args, app),
        Command::Store(args) => store::run(&args, app),
        Command::Approve(args) => approve::run(&args, app),
        Command::Confirm(args) => confirm::run(&args, app),
        Command::Harness(args) => harness::run(&args, app),
        Command::Probe(args) => harness::probe(&args, app),
        Command::Pack(args) => pack::run(&args, app),
        Command::Gateway(args) => gateway::run(&args, app),
        Command::Device(args) => device::run(&args, app),
        Command::Agent(args) => agent::run(&args, app),
        Command::Runner(args) => runner::run(&args, app),
        Command::Run(args) => run::run(&args, app),
        Command::Token(args) => token::run(&args, app),
        Command::Submission(args) => submission::run(&args, app),
        Command::Platform(args) => platform::run(&args, app),
        Command::Completions(args) => completions::run(&args, app),
        Command::Man(args) => man::run(&args, app),
    }
}

/// The time, for signatures.
pub(crate) fn now() -> Timestamp {
    SystemSurroundings::default().now()
}

/// Resolves when the process is told to end. Needs a runtime.
pub(crate) fn told_to_end() -> Result<impl Future<Output = ()>, Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let failed = |problem| Failure::usage(format!("signals cannot be heard: {problem}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Up to which rung calls run unasked, as it is typed.
fn ceiling(text: &str) -> Result<Ceiling, String> {
    let rung: u8 = text
        .parse()
        .map_err(|_| "a ceiling is a number from 0 to 3".to_owned())?;
    Ceiling::try_from(rung)
}

//! The reference page of the probes, made of their headers and checked in.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use lodestar_core::defence::Defence;

use crate::attack::{Testable, testable};
use crate::class::Owasp;
use crate::header::{Header, Section};
use crate::probe::Probe;

const OPENING: &str = "\
<!-- Made of the probes' headers by `LODESTAR_BLESS=1 cargo test -p lodestar-harness page`. -->
# Probes

Each probe plays an attack against the real parts and says what must be so afterwards. Its **contrast run** is
the same scenario without the one defence that it names, and has to be breached: a probe that cannot fail shows
nothing. [How to write one](../guides/write-a-probe.md) says more; `lodestar probe NAME` runs one.
";

/// The page.
pub fn reference_page(probes: &[Probe]) -> String {
    let mut page = String::from(OPENING);
    let headers: Vec<&Header> = probes.iter().map(|probe| &probe.header).collect();
    let mut sections: BTreeMap<Section, Vec<&Header>> = BTreeMap::new();
    for header in &headers {
        sections.entry(header.section).or_default().push(header);
    }
    let _ = writeln!(page, "\n{} probes.", headers.len());
    for (section, headers) in sections {
        let _ = writeln!(page, "\n## {}", heading(section));
        for header in headers {
            let _ = write!(
                page,
                "\n### `{}`\n\n{}\n\n- **Asserts:** {}\n- **Does not claim:** {}\n- **Class:** {}\n\
                 - **Contrast:** the same without `{}`\n- **Pack:** {}\n",
                header.name,
                header.scenario,
                header.asserts,
                header.does_not_claim,
                header.class,
                header.defence,
                header.pack
            );
        }
    }
    by_class(&mut page, &headers);
    by_defence(&mut page, &headers);
    page
}

fn heading(section: Section) -> &'static str {
    match section {
        Section::Firewall => "What is read, and what is believed",
        Section::Gate => "What may run",
        Section::Approvals => "People's word",
        Section::Proxy => "Between an agent and its servers",
        Section::Log => "The record",
        Section::Devices => "Devices and executions",
        Section::Outside => "Of others",
    }
}

fn by_class(page: &mut String, headers: &[&Header]) {
    page.push_str("\n## By class of attack\n\n| class | probes |\n|---|---|\n");
    for risk in Owasp::ALL {
        let of_risk = headers.iter().filter(|header| header.class.owasp == *risk);
        let names = listed(of_risk.copied());
        let names = match names.is_empty() {
            true => "none here".to_owned(),
            false => names,
        };
        let _ = writeln!(page, "| {} {} | {names} |", risk.id(), risk.title());
    }
}

fn by_defence(page: &mut String, headers: &[&Header]) {
    page.push_str(
        "\n## By defence\n\nBy which probes each defence is missed in their contrast runs, and whether the \
         searcher of `lodestar harness attack --contrast` misses it too.\n\n| defence | probes | searcher |\n|---|---|---|\n",
    );
    for defence in Defence::ALL {
        let of_defence = headers.iter().filter(|header| header.defence == *defence);
        let searcher = match testable(*defence) {
            Testable::Yes => "yes".to_owned(),
            Testable::No(why) => format!("no: {why}"),
        };
        let names = listed(of_defence.copied());
        let _ = writeln!(page, "| `{defence}` | {names} | {searcher} |");
    }
}

fn listed<'a>(headers: impl Iterator<Item = &'a Header>) -> String {
    let names: Vec<String> = headers.map(|header| format!("`{}`", header.name)).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;
    use crate::probes;

    #[test]
    fn the_page_says_what_the_probes_say() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/probes.md");
        let fresh = reference_page(&probes::all());
        if std::env::var_os("LODESTAR_BLESS").is_some() {
            std::fs::write(&file, &fresh).expect("written");
        }
        let there = std::fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(
            there, fresh,
            "run `LODESTAR_BLESS=1 cargo test -p lodestar-harness page`"
        );
    }

    #[test]
    fn every_probe_has_a_name_of_its_own_and_says_all_there_is_to_say() {
        let mut names = BTreeSet::new();
        for Probe { header, .. } in &probes::all() {
            assert!(names.insert(header.name.clone()), "{} twice", header.name);
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(header.name.chars().all(plain), "{}", header.name);
            for text in [&header.scenario, &header.asserts, &header.does_not_claim] {
                assert!(
                    text.len() > 20 && text.ends_with('.'),
                    "{}: {text}",
                    header.name
                );
                assert!(
                    !text.contains("  ") && !text.contains('|'),
                    "{}: {text}",
                    header.name
                );
            }
        }
        assert!(names.len() >= 80, "{} probes", names.len());
    }

    #[test]
    fn every_defence_is_missed_by_a_probe() {
        let probes = probes::all();
        for defence in Defence::ALL {
            let mut headers = probes.iter().map(|probe| &probe.header);
            assert!(
                headers.any(|header| header.defence == *defence),
                "{defence}"
            );
        }
    }
}

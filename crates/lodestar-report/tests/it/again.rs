//! Every statement of a report, made again from the raw lines of the log. Nothing here is the report's,
//! the replay's or the reader's code: lines are JSON, and what they mean is said once more.

mod signals;

use std::collections::{BTreeMap, BTreeSet};

use lodestar_core::digest::sha256;
use lodestar_core::name::SessionId;
use serde_json::{Value, json};

use crate::governed::Project;

/// The log, line by line: type, payload; and when each was written.
pub(crate) struct Raw {
    lines: Vec<(String, Value)>,
    times: Vec<Value>,
}

impl Raw {
    /// Whether the last line that is not the log's own closes the session.
    fn is_closed(&self) -> bool {
        let mut kinds = self.lines.iter().map(|(kind, _)| kind.as_str());
        let last = kinds.rfind(|kind| !kind.starts_with("log."));
        last == Some("session.closed@1")
    }

    pub(crate) fn read(project: &Project, session: &SessionId) -> Self {
        Self::at(&project.log(), session)
    }

    pub(crate) fn at(log: &lodestar_log::ProjectLog, session: &SessionId) -> Self {
        let path = log.session(session).events_path();
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().enumerate().map(|(at, line)| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            assert_eq!(line["head"]["seq"], at);
            let kind = line["head"]["type"].as_str().unwrap().to_owned();
            ((kind, line["payload"].take()), line["head"]["time"].take())
        });
        let (lines, times) = lines.unzip();
        Self { lines, times }
    }

    fn kind(&self, seq: &Value) -> &str {
        &self.line(seq).0
    }

    fn line(&self, seq: &Value) -> &(String, Value) {
        let at = seq.as_u64().unwrap_or_else(|| panic!("{seq} is no event"));
        &self.lines[usize::try_from(at).unwrap()]
    }

    fn of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = (u64, &'a Value)> {
        let lines = (0..).zip(&self.lines);
        lines
            .filter(move |(_, line)| line.0 == kind)
            .map(|(seq, line)| (seq, &line.1))
    }

    fn count(&self, kind: &str) -> usize {
        self.of(kind).count()
    }

    /// The last word on an action: the log's, whatever else is said.
    fn phase(&self, id: &Value) -> String {
        let mut phase = "none";
        for (kind, payload) in &self.lines {
            let about = match kind.as_str() {
                "action.proposed@1" => payload["id"] == *id,
                "approval.requested@1" => payload["card"]["action"]["id"] == *id,
                _ => payload["action"] == *id,
            };
            if !about {
                continue;
            }
            phase = match kind.as_str() {
                "action.proposed@1" => "proposed",
                "action.judged@1" => "arbitrated",
                "approval.requested@1" => "pending_approval",
                "action.cleared@1" => "cleared",
                "action.completed@1" => "completed",
                "action.failed@1" => "failed",
                "action.unknown@1" => "unknown",
                "action.rejected@1" if payload["kind"] == "halted" => "halted",
                "action.rejected@1" => "rejected",
                _ => phase,
            };
        }
        phase.to_owned()
    }

    /// The contract of a proposal: its own, or its tool's in the opening event.
    fn contract(&self, proposed: &Value) -> Value {
        if let Some(own) = proposed.get("contract") {
            return own.clone();
        }
        let tools = self.lines[0].1["tools"].as_array().unwrap();
        let tool = tools.iter().find(|one| one["name"] == proposed["tool"]);
        tool.unwrap()["contract"].clone()
    }

    /// Whether an action was cleared with grants that people gave before, each of them in the log.
    fn is_approved(&self, cleared_at: u64, cleared: &Value) -> bool {
        let grants = cleared["grants"].as_array().cloned().unwrap_or_default();
        let given: BTreeSet<String> = self
            .of("approval.granted@1")
            .filter(|(seq, one)| *seq < cleared_at && one["request"] == cleared["request"])
            .filter_map(|(_, one)| one.get("statement"))
            .map(|statement| {
                // Keys of what was parsed are in order, and there are no numbers: this is canonical.
                sha256(serde_json::to_string(statement).unwrap().as_bytes()).to_string()
            })
            .collect();
        !grants.is_empty()
            && grants
                .iter()
                .all(|one| given.contains(one.as_str().unwrap()))
    }
}

/// Holds a report against its log. Every member of the report has to be known here.
pub(crate) fn check(report: &Value, raw: &Raw) {
    let known = [
        "actions",
        "alerts",
        "answers",
        "beliefs",
        "calibrations",
        "ceiling",
        "counts",
        "decisions",
        "drift",
        "forged",
        "format",
        "hostile",
        "integrity",
        "limits",
        "refused_calls",
        "requests",
        "servers",
        "session",
    ];
    let mut members: Vec<&str> = report
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    members.sort_unstable();
    assert_eq!(members, known, "a member that nothing is known of");
    counts(report, raw);
    actions(report, raw);
    requests(report, raw);
    others(report, raw);
    signals::check(report, raw);
    beliefs(report, raw);
    answers(report, raw);
    cited(report, raw.lines.len() as u64);
}

fn counts(report: &Value, raw: &Raw) {
    let verdict = |wanted: &str| {
        let judged = raw.of("action.judged@1");
        judged.filter(|(_, one)| one["verdict"] == wanted).count()
    };
    let mut derived = json!({
        "events": raw.lines.len(),
        "proposed": raw.count("action.proposed@1"),
        "allowed": verdict("allow"),
        "held": verdict("hold"),
        "denied": verdict("deny"),
        "cleared": raw.count("action.cleared@1"),
        "completed": raw.count("action.completed@1"),
        "failed": raw.count("action.failed@1"),
        "unknown": raw.count("action.unknown@1"),
        "rejected": raw.count("action.rejected@1"),
        "observations": raw.count("observation.recorded@1"),
    });
    let groundless = raw.of("action.proposed@1").filter(|(_, one)| {
        let rests = one.get("dependencies").and_then(Value::as_array);
        one.get("decision").is_none() && rests.is_none_or(Vec::is_empty)
    });
    derived["groundless_decisions"] = json!(groundless.count());
    derived["beliefs"] = json!(report["beliefs"]["list"].as_array().unwrap().len());
    assert_eq!(report["counts"], derived);
}

fn actions(report: &Value, raw: &Raw) {
    let told = report["actions"].as_array().unwrap();
    let proposed: Vec<(u64, &Value)> = raw.of("action.proposed@1").collect();
    assert_eq!(told.len(), proposed.len());
    for (action, (seq, line)) in told.iter().zip(proposed) {
        let id = &action["id"];
        assert_eq!((&action["seq"], id), (&json!(seq), &line["id"]));
        assert_eq!(action["tool"], line["tool"]);
        let contract = raw.contract(line);
        assert_eq!(action["level"], contract["required_level"]);
        assert_eq!(action["blast_radius"], contract["blast_radius"]);
        assert_eq!(action["reversibility"], contract["reversibility"]);
        assert_eq!(action["phase"], raw.phase(id), "{id}");
        for argument in action["arguments"].as_array().unwrap() {
            let value = line["arguments"].pointer(argument["pointer"].as_str().unwrap());
            let value = value.unwrap();
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            assert_eq!(argument["value"], value);
            assert_eq!(argument["from"], provenance(line, &argument["pointer"]));
            for read in list(argument, "read_in") {
                assert_eq!(raw.kind(&read), "observation.recorded@1");
                assert!(read.as_u64() < Some(seq));
            }
        }
        about(
            action,
            "judged",
            &["action.judged@1"],
            raw,
            |judged, line| {
                assert_eq!(judged["verdict"], line["verdict"]);
                assert_eq!(judged["policies"], line["policies"]);
            },
        );
        about(
            action,
            "cleared",
            &["action.cleared@1"],
            raw,
            |cleared, line| {
                assert_eq!(cleared.get("request"), line.get("request"));
                assert_eq!(cleared.get("grants"), line.get("grants"));
            },
        );
        let ends = ["action.completed@1", "action.failed@1", "action.unknown@1"];
        about(action, "ended", &ends, raw, |ended, line| {
            assert_eq!(
                ended["result"],
                line.get("result").cloned().unwrap_or(json!("unknown"))
            );
            assert_eq!(ended.get("micros"), line.get("duration_micros"));
            if let Some(returned) = ended.get("returned") {
                let (kind, observed) = raw.line(returned);
                assert_eq!(kind, "observation.recorded@1");
                assert_eq!(observed["action"], *id);
            }
        });
        about(
            action,
            "rejected",
            &["action.rejected@1"],
            raw,
            |rejected, line| {
                assert_eq!(rejected["kind"], line["kind"]);
            },
        );
        never_completed_while_held(action, raw);
    }
}

/// What the log shows as held is shown as completed only if people agreed to it before it ran.
fn never_completed_while_held(action: &Value, raw: &Raw) {
    let id = &action["id"];
    let judged = raw
        .of("action.judged@1")
        .find(|(_, one)| one["action"] == *id);
    let was_held = judged.is_some_and(|(_, one)| one["verdict"] == "hold");
    let ran = ["completed", "failed", "unknown", "cleared"];
    let is_told_as_run = ran.iter().any(|phase| action["phase"] == *phase);
    if was_held && (is_told_as_run || action.get("ended").is_some()) {
        let cleared = raw
            .of("action.cleared@1")
            .find(|(_, one)| one["action"] == *id);
        let (seq, cleared) = cleared.expect("what was held and not cleared did not run");
        assert!(raw.is_approved(seq, cleared), "{action}");
    }
}

/// A part of an action against the line that it cites, which has to be about this action.
fn about(action: &Value, part: &str, kinds: &[&str], raw: &Raw, more: impl Fn(&Value, &Value)) {
    let lines = kinds.iter().flat_map(|kind| raw.of(kind));
    let mut lines = lines.filter(|(_, one)| one["action"] == action["id"]);
    let (told, line) = (action.get(part), lines.next());
    assert_eq!(told.is_some(), line.is_some(), "{part} of {action}");
    if let (Some(told), Some((seq, line))) = (told, line) {
        assert_eq!(told["seq"], seq);
        more(told, line);
    }
}

fn provenance(line: &Value, pointer: &Value) -> Value {
    let traced = line["provenance"].as_array().unwrap();
    let one = traced
        .iter()
        .find(|one| one[0] == *pointer || one["pointer"] == *pointer);
    let one = one.unwrap();
    match one.is_array() {
        true => json!("unknown"),
        false => one["label"].clone(),
    }
}

fn requests(report: &Value, raw: &Raw) {
    let told = report["requests"].as_array().unwrap();
    let asked: Vec<(u64, &Value)> = raw.of("approval.requested@1").collect();
    assert_eq!(told.len(), asked.len());
    for (request, (seq, line)) in told.iter().zip(asked) {
        assert_eq!(
            (&request["seq"], &request["id"]),
            (&json!(seq), &line["id"])
        );
        assert_eq!(request["quorum"], line["requirement"]["quorum"]);
        assert_eq!(request["expires_at"], line["expires_at"]);
        let mut answers = BTreeMap::new();
        for (kind, word) in [
            ("approval.granted@1", "granted"),
            ("approval.denied@1", "denied"),
            ("approval.refused@1", "refused"),
        ] {
            let of = raw.of(kind).filter(|(_, one)| one["request"] == line["id"]);
            answers.extend(of.map(|(seq, _)| (seq, json!(word))));
        }
        let heard: Vec<(u64, Value)> = request["answers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| (one["seq"].as_u64().unwrap(), one["kind"].clone()))
            .collect();
        assert_eq!(heard, answers.into_iter().collect::<Vec<_>>());
        for answer in request["answers"].as_array().unwrap() {
            let signed = &raw.line(&answer["seq"]).1["statement"];
            assert_eq!(answer["key"], signed["signatures"][0]["keyid"]);
        }
    }
}

/// Calls without an action, forgeries, drift, servers, tasks, ends.
fn others(report: &Value, raw: &Raw) {
    let seqs = |part: &str| -> Vec<u64> {
        let list = report[part].as_array().unwrap();
        list.iter()
            .map(|one| one["seq"].as_u64().unwrap())
            .collect()
    };
    let rejected = raw.of("action.rejected@1");
    let without = rejected.filter(|(_, one)| one.get("action").is_none());
    assert_eq!(
        seqs("refused_calls"),
        without.map(|(seq, _)| seq).collect::<Vec<_>>()
    );
    let mut forged: Vec<u64> = raw.of("approval.refused@1").map(|(seq, _)| seq).collect();
    forged.extend(raw.of("confirmation.refused@1").map(|(seq, _)| seq));
    let outputs = raw.of("server.output@1");
    forged.extend(
        outputs
            .filter(|(_, one)| one["stream"] == "forged")
            .map(|(seq, _)| seq),
    );
    forged.sort_unstable();
    assert_eq!(seqs("forged"), forged);
    assert_eq!(
        seqs("drift"),
        raw.of("tool.drifted@1")
            .map(|(seq, _)| seq)
            .collect::<Vec<_>>()
    );
    assert_eq!(
        seqs("servers").len(),
        raw.count("server.started@1") + raw.count("server.failed@1")
    );
    let session = &report["session"];
    let said: Vec<Value> = raw
        .of("task.stated@1")
        .map(|(seq, one)| json!({"seq": seq, "text": one["statement"]}))
        .collect();
    assert_eq!(session["tasks"], json!(said));
    assert_eq!(list(session, "halted").len(), raw.count("session.halted@1"));
    assert_eq!(
        session.get("closed").is_some(),
        raw.count("session.closed@1") > 0
    );
    assert_eq!(
        session["policy"]["digest"],
        raw.lines[0].1["policy"]["digest"]
    );
    for hostile in report["hostile"].as_array().unwrap() {
        for because in hostile["because"].as_array().unwrap() {
            if because["why"] == "fed_calls" {
                for call in list(because, "events") {
                    let id = &raw.line(&call).1["id"];
                    let judged = raw
                        .of("action.judged@1")
                        .find(|(_, one)| one["action"] == *id);
                    assert_ne!(judged.unwrap().1["verdict"], "allow");
                }
            }
        }
    }
}

fn beliefs(report: &Value, raw: &Raw) {
    let adopted = |seq: &Value| match raw.kind(seq) {
        "belief.adopted@1" => raw.line(seq).1["beliefs"].as_array().cloned(),
        "belief.adopted@2" => None,
        other => panic!("{other} adopts nothing"),
    };
    for belief in report["beliefs"]["list"].as_array().unwrap() {
        let moves = list(belief, "moves");
        if let Some(lines) = adopted(&belief["seq"]) {
            let line = lines.iter().find(|one| one["id"] == belief["id"]).unwrap();
            assert_eq!(belief["confidence"], line["confidence"]);
            assert_eq!(belief["authority"], line["authority"]);
            if moves.is_empty() {
                for axis in ["truth", "retrieval", "security", "freshness"] {
                    assert_eq!(belief[axis], line[axis]);
                }
            }
        } else {
            let results = list(&raw.line(&belief["seq"]).1, "results");
            for source in list(belief, "sources") {
                assert!(results.contains(&source), "{belief}");
            }
        }
        let was_read = ["external_document", "model_inference"]
            .iter()
            .any(|quality| belief["quality"] == *quality);
        if was_read && moves.is_empty() {
            assert_eq!(belief["truth"], "unverified", "{belief}");
        }
    }
    let declared: BTreeSet<u64> = raw.of("decision.made@1").map(|(seq, _)| seq).collect();
    for decision in report["decisions"].as_array().unwrap() {
        let seq = decision["seq"].as_u64().unwrap();
        assert_eq!(decision["origin"] == "declared", declared.contains(&seq));
        if decision["origin"] == "synthesised" {
            let rests: Vec<Value> = list(&raw.line(&decision["seq"]).1, "dependencies");
            let told = list(decision, "rests_on");
            let ids = |all: &[Value]| -> BTreeSet<String> {
                all.iter().map(|one| one["belief"].to_string()).collect()
            };
            assert_eq!(told.len(), rests.len());
            assert_eq!(ids(&told), ids(&rests));
        }
    }
}

/// What an answer that says no adds where nothing says that the log is all there was.
const AS_FAR_AS_IT_GOES: &str = "; as far as the log goes, for the session was not closed";

fn answers(report: &Value, raw: &Raw) {
    let answers = &report["answers"];
    let beliefs = report["beliefs"]["list"].as_array().unwrap();
    let trusted = beliefs.iter().any(|one| {
        one["truth"] == "supported"
            && ["external_document", "model_inference"]
                .iter()
                .any(|quality| one["quality"] == *quality)
    });
    // What independent direct evidence bears out did not become trusted on anybody's word.
    let on_a_word = beliefs.iter().any(|one| {
        let raised = list(one, "moves");
        let mut raised = raised.iter().filter(|one| one["to"] == "supported");
        raised.any(|one| one["authority"] != "auto_observation")
    });
    let borne_out = |one: &&Value| {
        let raised = list(one, "moves");
        one["truth"] == "supported" && raised.iter().any(|one| one["to"] == "supported")
    };
    let read = beliefs.iter().filter(|one| {
        let weak = ["external_document", "model_inference"];
        weak.iter().any(|quality| one["quality"] == *quality)
    });
    let unexplained = trusted
        && read
            .clone()
            .any(|one| one["truth"] == "supported" && !borne_out(&one));
    let answer = &answers["untrusted_became_trusted"];
    assert_eq!(
        answer["answer"] == "yes",
        on_a_word || unexplained,
        "{answer}"
    );
    let is_closed = raw.is_closed();
    let because = answer["because"].as_str().unwrap();
    if answer["answer"] == "no" {
        let reserved = because.ends_with(AS_FAR_AS_IT_GOES);
        assert_eq!(reserved, !is_closed, "{because}");
        let standing = if is_closed { "good" } else { "open" };
        assert_eq!(answer["standing"], standing);
    }
    let because = because.trim_end_matches(AS_FAR_AS_IT_GOES);
    if let Some((_, said)) = because.split_once("; ")
        && answer["answer"] == "no"
    {
        let many = read.filter(borne_out).count();
        assert!(
            said.starts_with(&format!("{many} of them are supported")),
            "{said}"
        );
    }
    let unapproved = raw.of("action.cleared@1").any(|(seq, cleared)| {
        let proposed = raw
            .of("action.proposed@1")
            .find(|(_, one)| one["id"] == cleared["action"]);
        let contract = raw.contract(proposed.unwrap().1);
        let grave = contract["reversibility"] == "irreversible"
            || ["L4", "L5"]
                .iter()
                .any(|rung| contract["required_level"] == *rung);
        grave && !raw.is_approved(seq, cleared)
    });
    assert_eq!(
        answers["irreversible_without_approval"]["answer"] == "yes",
        unapproved
    );
    assert_eq!(answers["execution_trust"]["answer"], "none");
    let proven = &report["integrity"]["proven"];
    let is_whole = is_closed && *proven == raw.lines.len();
    assert!(
        answers["log_intact"]["answer"] != "yes" || is_whole,
        "{}",
        answers["log_intact"]
    );
}

fn list(value: &Value, name: &str) -> Vec<Value> {
    value
        .get(name)
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default()
}

/// Every number that cites an event cites one that is there.
fn cited(value: &Value, events: u64) {
    match value {
        // Events of another session, which is named.
        Value::Object(members)
            if members.contains_key("session") && members.contains_key("seq") => {}
        Value::Object(members) => {
            for (name, member) in members {
                let cites = [
                    "seq", "events", "read_in", "sources", "returned", "proposed", "adopted",
                ];
                let counts =
                    members.contains_key("groundless_decisions") || members.contains_key("root");
                if cites.contains(&name.as_str()) && !counts {
                    let numbers = match member {
                        Value::Array(list) => list.clone(),
                        one => vec![one.clone()],
                    };
                    for number in numbers.iter().filter_map(Value::as_u64) {
                        assert!(number < events, "{name} {number}");
                    }
                }
                cited(member, events);
            }
        }
        Value::Array(list) => list.iter().for_each(|one| cited(one, events)),
        _ => {}
    }
}

//! Forged words through real sessions and real channels: files in the drop directory, and files in the
//! folder of confirmations. What counts is the file that the tool itself writes.

mod approvals;
mod confirmations;
mod mutants;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lodestar_guard::channel::Channel;
use lodestar_guard::channel::drop::{DropDirectory, Pile};
use lodestar_guard::{Holds, Session};
use lodestar_policy::ApprovalRequest;
use serde_json::Value;

use crate::drop::{answers, folder};
use crate::governed::{CountingTool, Project};
use crate::people::{random, times_out};
use crate::steps::tracing;

/// A session whose tool leaves a trace outside of the project, asked through the drop directory.
pub(crate) struct Scene {
    pub(crate) project: Project,
    pub(crate) session: Session,
    pub(crate) request: ApprovalRequest,
    outside: tempfile::TempDir,
}

impl Scene {
    /// A call is held.
    pub(crate) async fn held(config: &str, arguments: Value) -> Self {
        let project = Project::new();
        let outside = tempfile::tempdir().unwrap();
        let tool = tracing("box.send", &outside.path().join("traces"));
        let session = open(&project, config, &tool).await;
        let id = times_out(&session, arguments).await;
        let pile = Pile::below(&project.root).unwrap();
        let mut shown = pile.requests().map(|shown| &shown.announcement().request);
        let request = shown.find(|request| request.id == id).cloned().unwrap();
        Self {
            project,
            session,
            request,
            outside,
        }
    }

    pub(crate) fn traces(&self) -> PathBuf {
        self.outside.path().join("traces")
    }

    /// How often the tool ran, as it says itself.
    pub(crate) fn ran(&self) -> usize {
        std::fs::read_to_string(self.traces()).map_or(0, |text| text.lines().count())
    }

    pub(crate) fn drop_folder(&self) -> PathBuf {
        folder(&self.project.root, self.session.id().as_str())
    }

    /// Puts bytes where an answer to the request is looked for.
    pub(crate) fn drop_answer(&self, bytes: &[u8]) {
        let nonce: String = random().iter().map(|byte| format!("{byte:02x}")).collect();
        let name = format!("{}.{nonce}.answer.json", self.request.id);
        let (folder, temporary) = (self.drop_folder(), format!("{nonce}.new"));
        std::fs::write(folder.join(&temporary), bytes).unwrap();
        std::fs::rename(folder.join(temporary), folder.join(name)).unwrap();
    }

    /// Waits until all that was dropped is in the log.
    pub(crate) async fn heard(&self) {
        let folder = self.drop_folder();
        for _ in 0..60_000 {
            if answers(&folder) == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("what was dropped was not heard");
    }

    /// The session is sound; its events are given back.
    pub(crate) async fn over(&self) -> Vec<(String, Value)> {
        self.session.close("done").await.unwrap();
        self.project.assert_sound(self.session.id());
        self.project.events(self.session.id())
    }
}

pub(crate) async fn open(project: &Project, config: &str, tool: &CountingTool) -> Session {
    let others = ["box.read", "box.write"].map(CountingTool::new);
    let channel: Arc<dyn Channel> = Arc::new(DropDirectory::below(&project.root));
    let setup = project.setup(config, &others).tool(tool.clone());
    let setup = setup.holds(Holds::Tell(vec![channel]));
    setup.open().await.unwrap()
}

/// How often each reason stands in the log, of events of this type.
pub(crate) fn reasons_of(events: &[(String, Value)], kind: &str) -> BTreeMap<String, usize> {
    let mut reasons = BTreeMap::new();
    for (_, payload) in events.iter().filter(|(found, _)| found == kind) {
        let reason = &payload["reason"];
        let names = ["refused", "distrust", "unmatched"].iter();
        let name = names.filter_map(|name| reason[name].as_str()).next();
        *reasons.entry(name.unwrap().to_owned()).or_default() += 1;
    }
    reasons
}

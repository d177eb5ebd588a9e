//! What a pod declared when this agent first saw it: a digest per pod, kept on disk.
//!
//! A sandbox carries the annotations of the moment it was made; one that is made again, after the node's reboot say,
//! takes the live ones. A user who gets a changed annotation past admission thus changes nothing in a pod that was
//! notified before. The digest does not vouch for the first declaration: the controller accepts only notifications of pods
//! that were created after admission refused such changes.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use boathook_actions::place::cri::Runtime;
use boathook_api::{Declarations, declaration::of_annotations, outcome::Failure, pod_notification::ErrorType};
use boathook_process::private;
use ring::digest::{Context, SHA256};
use snafu::{ResultExt, Snafu};

#[derive(Debug, Snafu)]
#[snafu(display("failed to {what} `{}`", path.display()))]
pub struct DigestError {
    what: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// The digests of a folder, a file per pod.
pub(crate) struct Digests {
    dir: PathBuf,
}

impl Digests {
    pub(crate) fn open(dir: &Path) -> Result<Self, DigestError> {
        private::directory(dir).context(DigestSnafu { what: "make", path: dir })?;
        Ok(Self { dir: dir.to_owned() })
    }

    /// What the pod declares, if that is what it declared first.
    pub(crate) fn declared(
        &self,
        pod_uid: &str,
        annotations: &BTreeMap<String, String>,
    ) -> Result<Result<Declarations, Failure>, DigestError> {
        let path = self.path(pod_uid);
        let now = digest(annotations);
        match read(&path).context(DigestSnafu { what: "read", path: &path })? {
            Some(first) if first == now => {}
            Some(_) => return Ok(Err(Failure::new(ErrorType::InvalidDeclaration, CHANGED))),
            None => private::write(&path, now.as_bytes()).context(DigestSnafu { what: "write", path: &path })?,
        }
        // Which containers may declare was checked when the object was accepted, against the pod itself.
        let containers: Vec<_> = of_annotations(annotations).map(|(container, _)| container.to_owned()).collect();
        Ok(Declarations::parse(annotations, &containers).map_err(Failure::from))
    }

    /// Forgets those of pods that are gone. As long as anything is left of a pod, it may be made again.
    pub(crate) async fn forget_gone(&self, runtime: &Runtime) {
        for pod in self.pods() {
            if let Ok(false) = runtime.knows(&pod).await {
                self.forget(&pod);
            }
        }
    }

    /// The pods that a digest is kept of.
    fn pods(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().filter_map(Result::ok);
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    fn forget(&self, pod_uid: &str) {
        // What cannot be removed is in the way of nobody.
        let _ = fs::remove_file(self.path(pod_uid));
    }

    fn path(&self, pod_uid: &str) -> PathBuf {
        let safe = pod_uid.chars().map(|one| if one.is_ascii_alphanumeric() { one } else { '-' });
        self.dir.join(safe.collect::<String>())
    }
}

const CHANGED: &str = "the pod's notifiers changed after its creation: create the pod again";

/// `None`: there is no digest, or a part of one: the disk was full, or the host crashed.
fn read(path: &Path) -> io::Result<Option<String>> {
    match fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8(bytes).ok().filter(|text| is_whole(text))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_whole(digest: &str) -> bool {
    digest.len() == 2 * SHA256.output_len() && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn digest(annotations: &BTreeMap<String, String>) -> String {
    let mut context = Context::new(&SHA256);
    for (container, text) in of_annotations(annotations) {
        for part in [container, text] {
            context.update(&part.len().to_le_bytes());
            context.update(part.as_bytes());
        }
    }
    context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use boathook_actions::place::cri::Options;
    use boathook_cri::*;
    use tonic::{Request, Response, Status};

    use super::*;

    #[test]
    fn a_changed_declaration_is_not_honoured_and_other_annotations_may_change() {
        let dir = std::env::temp_dir().join(format!("boathook-digests-{}", std::process::id()));
        let digests = Digests::open(&dir).unwrap();
        let annotated = |text: &str, other: &str| {
            let of_main = ("notifiers.boathook.dev/main".to_owned(), text.to_owned());
            BTreeMap::from([of_main, ("example.com/other".to_owned(), other.to_owned())])
        };
        let reload = "[{name: reload, handler: {signal: HUP}}]";
        let first = digests.declared("a-b", &annotated(reload, "1")).unwrap().unwrap();
        assert_eq!(first.of("reload").count(), 1);
        assert_eq!(digests.declared("a-b", &annotated(reload, "2")).unwrap(), Ok(first));
        let changed = digests.declared("a-b", &annotated("[{name: reload, handler: {signal: USR1}}]", "1")).unwrap();
        assert_eq!(changed, Err(Failure::new(ErrorType::InvalidDeclaration, CHANGED)));
        assert_eq!(digests.pods(), ["a-b"]);
        digests.forget("a-b");
        assert_eq!(digests.pods(), [""; 0]);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn incomplete_digest_is_written_again() {
        let dir = std::env::temp_dir().join(format!("boathook-incomplete-{}", std::process::id()));
        let digests = Digests::open(&dir).unwrap();
        let nothing = BTreeMap::new();
        let whole = digest(&nothing);
        for left in [Vec::new(), whole.as_bytes()[..10].to_owned(), vec![0; whole.len()], vec![0xff; whole.len()]] {
            fs::write(digests.path("a"), &left).unwrap();
            assert!(digests.declared("a", &nothing).unwrap().is_ok(), "{left:?}");
            assert_eq!(fs::read_to_string(digests.path("a")).unwrap(), whole);
        }
        fs::remove_dir_all(dir).unwrap();
    }

    /// A runtime after the node's reboot: it has one sandbox, which is not ready.
    struct Rebooted;

    type Answer<T> = Result<Response<T>, Status>;

    #[tonic::async_trait]
    impl RuntimeService for Rebooted {
        async fn list_pod_sandbox(&self, asked: Request<ListPodSandboxRequest>) -> Answer<ListPodSandboxResponse> {
            let filter = asked.into_inner().filter.unwrap_or_default();
            let wanted = filter.state.is_none_or(|wanted| wanted.state() == PodSandboxState::SandboxNotready);
            let listed = wanted && filter.label_selector.values().any(|value| value == "kept");
            let items = if listed { vec![PodSandbox::default()] } else { Vec::new() };
            Ok(Response::new(ListPodSandboxResponse { items }))
        }

        async fn version(&self, _: Request<VersionRequest>) -> Answer<VersionResponse> {
            Err(Status::unimplemented(""))
        }

        async fn status(&self, _: Request<StatusRequest>) -> Answer<StatusResponse> {
            Err(Status::unimplemented(""))
        }

        async fn pod_sandbox_status(&self, _: Request<PodSandboxStatusRequest>) -> Answer<PodSandboxStatusResponse> {
            Err(Status::unimplemented(""))
        }

        async fn list_containers(&self, _: Request<ListContainersRequest>) -> Answer<ListContainersResponse> {
            Err(Status::unimplemented(""))
        }

        async fn container_status(&self, _: Request<ContainerStatusRequest>) -> Answer<ContainerStatusResponse> {
            Err(Status::unimplemented(""))
        }

        async fn exec_sync(&self, _: Request<ExecSyncRequest>) -> Answer<ExecSyncResponse> {
            Err(Status::unimplemented(""))
        }

        async fn exec(&self, _: Request<ExecRequest>) -> Answer<ExecResponse> {
            Err(Status::unimplemented(""))
        }
    }

    #[tokio::test]
    async fn a_digest_is_kept_while_anything_is_left_of_its_pod() {
        let dir = std::env::temp_dir().join(format!("boathook-forgetting-{}", std::process::id()));
        let digests = Digests::open(&dir.join("declared")).unwrap();
        for pod in ["kept", "gone"] {
            digests.declared(pod, &BTreeMap::new()).unwrap().unwrap();
        }
        let socket = dir.join("cri.sock");
        digests.forget_gone(&Runtime::new(&socket, Options::default())).await;
        assert_eq!(digests.pods().len(), 2, "a runtime that does not answer says nothing of its pods");
        tokio::spawn(serve(listen(&socket).unwrap(), Rebooted));
        digests.forget_gone(&Runtime::new(&socket, Options::default())).await;
        assert_eq!(digests.pods(), ["kept"]);
        fs::remove_dir_all(dir).unwrap();
    }
}

//! `cp`, which is `tar` through `exec`.

use anyhow::{Result, ensure};
use boathook_tests::Ctx;

use crate::{
    kubectl::{Kubectl, has},
    manifests::{IDLE, pod},
};

pub(crate) async fn files_are_copied_both_ways(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.apply(&pod("box", IDLE)).await?;
    kubectl.ok("wait --for=condition=Ready pod/box").await?;

    // Larger than any buffer on the way; no two pieces alike.
    let sent: String = (0..300_000).map(|number| format!("{number}\n")).collect();
    kubectl.file("sent", &sent)?;
    kubectl.ok("cp sent box:/tmp/there").await?;
    assert_eq!(kubectl.ok("exec box -- wc -c /tmp/there").await?.trim(), format!("{} /tmp/there", sent.len()));
    kubectl.ok("cp box:/tmp/there back").await?;
    ensure!(std::fs::read_to_string(kubectl.path("back"))? == sent, "what came back is not what was sent");

    // Whole folders, with the other's namespace in the name.
    let tree = kubectl.path("tree");
    std::fs::create_dir_all(tree.join("deep"))?;
    std::fs::write(tree.join("a"), "1")?;
    std::fs::write(tree.join("deep/b"), "2")?;
    kubectl.ok(&format!("cp tree {}/box:/tmp/tree -c main", kubectl.namespace())).await?;
    assert_eq!(kubectl.ok("exec box -- sh -c 'cat /tmp/tree/a /tmp/tree/deep/b'").await?, "12");
    kubectl.ok("exec box -- sh -c 'echo 3 >/tmp/tree/deep/c'").await?;
    kubectl.ok("cp box:/tmp/tree home").await?;
    assert_eq!(std::fs::read_to_string(kubectl.path("home/deep/c"))?, "3\n");
    assert_eq!(std::fs::read_to_string(kubectl.path("home/deep/b"))?, "2");

    has(&kubectl.fails("cp nothing box:/tmp/x").await?, &["error: nothing doesn't exist in local filesystem"])
}

//! The files of `docs/databases.md`: what is tried is what people read.

use anyhow::{Context, Result, bail};
use boathook_api::ExecutionHookTemplate;
use boathook_tests::Ctx;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use serde_json::Value;

const PAGE: &str = include_str!("../../docs/databases.md");

/// The file that the page calls so.
pub(crate) fn file(name: &str) -> Result<&'static str> {
    let blocks = PAGE.split("\n```yaml\n# ").skip(1);
    let mut files = blocks.filter_map(|block| block.split_once("\n```")?.0.split_once('\n'));
    let found = files.find(|(title, _)| *title == name);
    found.map(|(_, text)| text).with_context(|| format!("docs/databases.md has no file `{name}`"))
}

/// The file for this machine, where the package has made a user of its own: the page's `sed`.
pub(crate) fn run_as(file: &str, user: &str) -> Result<String> {
    let users = std::fs::read_to_string("/etc/passwd").context("failed to read /etc/passwd")?;
    let fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|fields| fields[0] == user);
    let Some([_, _, uid, gid, ..]) = fields.as_deref() else {
        bail!("there is no user `{user}`: apt-get install --no-install-recommends postgresql mariadb-server")
    };
    Ok(file.replace("User: 999", &format!("User: {uid}")).replace("Group: 999", &format!("Group: {gid}")))
}

/// Creates every object of the file.
pub(crate) async fn create(ctx: &Ctx, file: &str) -> Result<()> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(file).map_err(|error| anyhow::anyhow!("{error}"))?;
    for object in objects {
        match object["kind"].as_str() {
            Some("PersistentVolumeClaim") => {
                ctx.create::<PersistentVolumeClaim>(&serde_json::from_value(object)?).await.map(drop)?;
            }
            Some("Pod") => ctx.create::<Pod>(&serde_json::from_value(object)?).await.map(drop)?,
            Some("ExecutionHookTemplate") => {
                ctx.create::<ExecutionHookTemplate>(&serde_json::from_value(object)?).await.map(drop)?;
            }
            other => bail!("no recipe needs a {other:?}"),
        }
    }
    Ok(())
}

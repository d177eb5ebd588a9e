//! From a container of a pod's spec to one that can be started.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{Container, Pod};

use super::environment::{ConfigError, Sources, Variables};
use super::expand::expand;
use super::pod::PodExt;
use super::volumes::Prepared;
use crate::runtime::image::Image;
use crate::runtime::plan::{ContainerSpec, Mount, Process, RootFiles};
use crate::runtime::within_root::read_text;

/// An image with a larger `/etc/passwd` is treated like one without.
const LARGEST_PASSWD: u64 = 1 << 20;

/// What a container runtime gives to an image that says nothing.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

pub(super) async fn container_spec(
    sources: &Sources<'_>,
    container: &Container,
    image: &Image,
    volumes: &BTreeMap<String, Prepared>,
    termination_log: PathBuf,
) -> Result<ContainerSpec, ConfigError> {
    let pod = sources.pod;
    let hostname = hostname(pod);
    let image_env = image.config.env.as_deref().unwrap_or_default();
    let mut variables = sources.variables(container, image_env).await?;
    let (uid, gid, groups) = identity(pod, container, image)?;
    let terminal = container.tty == Some(true);
    let mut defaults =
        vec![("PATH", PATH.to_owned()), ("HOSTNAME", hostname.clone()), ("HOME", home(&image.root, uid))];
    defaults.extend(terminal.then(|| ("TERM", "xterm".to_owned())));
    for (name, value) in defaults {
        if variables.get(name).is_none() {
            variables.set(name, value);
        }
    }
    let mut mounts = mounts(container, volumes, &variables)?;
    let message_path = container.termination_message_path.as_deref().unwrap_or("/dev/termination-log");
    mounts.push(Mount { source: termination_log, target: message_path.into(), read_only: false });

    let expanded = |words: &[String]| -> Vec<String> {
        words.iter().map(|word| expand(word, |name| variables.get(name))).collect()
    };
    let entrypoint = image.config.entrypoint.clone().unwrap_or_default();
    let argv = match (&container.command, &container.args) {
        (Some(command), args) => [expanded(command), expanded(args.as_deref().unwrap_or_default())].concat(),
        (None, Some(args)) => [entrypoint, expanded(args)].concat(),
        (None, None) => [entrypoint, image.config.cmd.clone().unwrap_or_default()].concat(),
    };
    let cwd = container.working_dir.clone().or_else(|| image.config.working_dir.clone());
    let cwd = cwd.filter(|cwd| !cwd.is_empty()).unwrap_or_else(|| "/".to_owned());
    let context = container.security_context.as_ref();
    Ok(ContainerSpec {
        root: image.root.clone(),
        read_only_root: context.and_then(|context| context.read_only_root_filesystem) == Some(true),
        mounts,
        hostname,
        process: Process { argv, env: variables.into_pairs(), cwd: cwd.into(), uid, gid, groups, terminal },
    })
}

pub(super) fn hostname(pod: &Pod) -> String {
    let name = pod.pod_spec().hostname.clone().filter(|name| !name.is_empty());
    let mut name = name.unwrap_or_else(|| pod.namespaced_name().1);
    // As long as a host's name may be.
    name.truncate(63);
    name.trim_end_matches(['-', '.']).to_owned()
}

/// User, group and further groups: of the container, of the pod, of the image, in this order.
fn identity(pod: &Pod, container: &Container, image: &Image) -> Result<(u32, u32, Vec<u32>), ConfigError> {
    let own = container.security_context.clone().unwrap_or_default();
    let shared = pod.pod_spec().security_context.clone().unwrap_or_default();
    let id = |id: i64| u32::try_from(id).ok();
    let (image_user, image_group) = image_identity(image)?;
    let user = own.run_as_user.or(shared.run_as_user).and_then(id).unwrap_or(image_user);
    let group = own.run_as_group.or(shared.run_as_group).and_then(id).unwrap_or(image_group);
    if own.run_as_non_root.or(shared.run_as_non_root) == Some(true) && user == 0 {
        let (described, name) = (pod.described(), &container.name);
        let what = "container has runAsNonRoot and image will run as root";
        return Err(ConfigError(format!("{what} (pod: \"{described}\", container: {name})")));
    }
    let groups = shared.supplemental_groups.into_iter().flatten().chain(shared.fs_group);
    Ok((user, group, groups.filter_map(id).collect()))
}

/// The lines of the image's own /etc/passwd, in fields.
fn passwd(root: &RootFiles) -> Vec<Vec<String>> {
    let text = match root {
        RootFiles::Host => std::fs::read_to_string("/etc/passwd"),
        RootFiles::Directory(root) => read_text(root, Path::new("etc/passwd"), LARGEST_PASSWD),
    };
    let text = text.unwrap_or_default();
    text.lines().map(|line| line.split(':').map(str::to_owned).collect()).collect()
}

/// The image's `User`: numbers, or names of its own /etc/passwd.
fn image_identity(image: &Image) -> Result<(u32, u32), ConfigError> {
    let text = image.config.user.as_deref().unwrap_or_default();
    let (user, group) = text.split_once(':').unwrap_or((text, ""));
    if user.is_empty() {
        return Ok((0, 0));
    }
    let entries = passwd(&image.root);
    let entry = entries.iter().find(|fields| fields.len() > 3 && (fields[0] == user || fields[2] == user));
    let uid = user.parse().ok().or_else(|| entry?[2].parse().ok());
    let missing = || ConfigError(format!("unable to find user {user}: no matching entries in passwd file"));
    let gid = if group.is_empty() { entry.and_then(|entry| entry[3].parse().ok()) } else { group.parse().ok() };
    Ok((uid.ok_or_else(missing)?, gid.unwrap_or(0)))
}

fn home(root: &RootFiles, uid: u32) -> String {
    let entry = passwd(root).into_iter().find(|fields| fields.get(2) == Some(&uid.to_string()));
    entry.and_then(|fields| fields.get(5).cloned()).unwrap_or_else(|| "/".to_owned())
}

fn mounts(
    container: &Container,
    volumes: &BTreeMap<String, Prepared>,
    variables: &Variables,
) -> Result<Vec<Mount>, ConfigError> {
    let mut mounts = Vec::new();
    for mount in container.volume_mounts.iter().flatten() {
        let volume = volumes.get(&mount.name);
        let volume = volume.ok_or_else(|| ConfigError(format!("cannot find volume \"{}\" to mount", mount.name)))?;
        let expression = mount.sub_path_expr.as_ref().filter(|text| !text.is_empty());
        let expanded = expression.map(|text| expand(text, |name| variables.get(name)));
        let sub_path = expanded.or_else(|| mount.sub_path.clone().filter(|path| !path.is_empty()));
        let source = sub_path.map_or_else(|| Ok(volume.path.clone()), |path| sub_directory(&volume.path, &path));
        let source = source.map_err(|error| {
            let of = format!("volumeMount \"{}\" of container \"{}\"", mount.name, container.name);
            ConfigError(format!("failed to prepare subPath for {of}: {error}"))
        })?;
        let read_only = volume.read_only || mount.read_only == Some(true);
        mounts.push(Mount { source, target: PathBuf::from(&mount.mount_path), read_only });
    }
    Ok(mounts)
}

/// A path within a volume, made if it is not there, and never one outside by way of a link.
fn sub_directory(volume: &Path, path: &str) -> std::io::Result<PathBuf> {
    let wanted = volume.join(path);
    let volume = volume.canonicalize()?;
    let outside = || std::io::Error::other(format!("subpath {path:?} not within volume path"));
    if path.starts_with('/') || path.split('/').any(|part| part == "..") {
        return Err(outside());
    }
    // What is there already must be inside before anything is made below it.
    let there = wanted.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(&volume).canonicalize()?;
    if !there.starts_with(&volume) {
        return Err(outside());
    }
    let new: Vec<PathBuf> = wanted.ancestors().take_while(|path| !path.exists()).map(Path::to_owned).collect();
    std::fs::create_dir_all(&wanted)
        .or_else(|error| if error.kind() == std::io::ErrorKind::AlreadyExists { Ok(()) } else { Err(error) })?;
    // Whoever may use the volume may use what is made in it.
    for directory in new {
        std::fs::set_permissions(directory, volume.metadata()?.permissions())?;
    }
    wanted.canonicalize()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::sync::mpsc;
    use std::time::Duration;

    use rustix::fs::{CWD, FileType, Mode};

    use super::*;

    /// The home of user 7 by the `etc/passwd` of an image that is made so.
    fn home_of_image(make: impl FnOnce(&Path)) -> String {
        let dir = std::env::temp_dir().join(format!("boathook-passwd-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("root/etc")).unwrap();
        std::fs::write(dir.join("of-the-host"), "app:x:7:8::/host:").unwrap();
        make(&dir.join("root"));
        let root = RootFiles::Directory(dir.join("root"));
        let (answer, answered) = mpsc::channel();
        std::thread::spawn(move || answer.send(home(&root, 7)));
        let home = answered.recv_timeout(Duration::from_secs(10));
        std::fs::remove_dir_all(dir).unwrap();
        home.expect("it is read without an end")
    }

    #[test]
    fn passwd_is_a_regular_file_of_the_image() {
        let text = "app:x:7:8::/srv:\n";
        assert_eq!(home_of_image(|root| std::fs::write(root.join("etc/passwd"), text).unwrap()), "/srv");
        let linked = |root: &Path| {
            std::fs::write(root.join("users"), text).unwrap();
            symlink("/users", root.join("etc/passwd")).unwrap();
        };
        assert_eq!(home_of_image(linked), "/srv", "a link within the image");
        let outside = |root: &Path| symlink("../../of-the-host", root.join("etc/passwd")).unwrap();
        assert_eq!(home_of_image(outside), "/", "a link to the host");
        let pipe = |root: &Path| {
            let mode = Mode::from_raw_mode(0o644);
            rustix::fs::mknodat(CWD, root.join("etc/passwd"), FileType::Fifo, mode, 0).unwrap();
        };
        assert_eq!(home_of_image(pipe), "/", "a pipe");
        let large = |root: &Path| {
            std::fs::write(root.join("etc/passwd"), text).unwrap();
            let file = std::fs::File::options().write(true).open(root.join("etc/passwd")).unwrap();
            file.set_len((1 << 20) + 1).unwrap();
        };
        assert_eq!(home_of_image(large), "/", "a file that is too large");
    }

    #[test]
    fn a_sub_path_never_leaves_its_volume() {
        let dir = std::env::temp_dir().join(format!("boathook-subpath-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        std::os::unix::fs::symlink("/", dir.join("out")).unwrap();
        assert_eq!(sub_directory(&dir, "a/b").unwrap(), dir.canonicalize().unwrap().join("a/b"));
        assert!(sub_directory(&dir, "../x").is_err());
        assert!(sub_directory(&dir, "out/tmp").is_err());
        assert!(sub_directory(&dir, "out/no-such-thing").is_err());
        std::fs::remove_dir_all(dir).unwrap();
    }
}

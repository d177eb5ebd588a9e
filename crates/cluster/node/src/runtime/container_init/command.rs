//! The last steps inside a container: its user, its directory, and the command itself.
//!
//! Messages are those of runc, which a real node reports in a container's status.

use std::convert::Infallible;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::Mode;
use rustix::process::{Gid, Uid};
use rustix::thread::UnshareFlags;

use super::super::plan::{Isolation, Plan, Process, RootFiles};
use super::keeper::map_one_user;
use super::namespaces;

pub(super) fn become_user(process: &Process, isolation: Isolation) -> io::Result<()> {
    rustix::process::umask(Mode::from_raw_mode(0o022));
    let already = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    match isolation {
        Isolation::Root => {
            let groups: Vec<Gid> = process.groups.iter().map(|group| Gid::from_raw(*group)).collect();
            rustix::thread::set_thread_groups(&groups)?;
            rustix::thread::set_thread_gid(Gid::from_raw(process.gid))?;
            rustix::thread::set_thread_uid(Uid::from_raw(process.uid))?;
        }
        // One user is all there is: another name for it is a user namespace further in.
        Isolation::Rootless if (process.uid, process.gid) != already => {
            namespaces::unshare(UnshareFlags::NEWUSER)?;
            map_one_user((process.uid, process.gid), already)?;
        }
        Isolation::Rootless => {}
        Isolation::Plain if already.0 == 0 => {
            rustix::thread::set_thread_gid(Gid::from_raw(process.gid))?;
            rustix::thread::set_thread_uid(Uid::from_raw(process.uid))?;
        }
        Isolation::Plain => {}
    }
    Ok(())
}

/// A working directory that the image does not have is made, by root, as runc does.
pub(super) fn make_directory(plan: &Plan) {
    if let Plan::Start { isolation: Isolation::Root | Isolation::Rootless, container, .. } = plan {
        // Entering it tells why, if it could not be made.
        std::fs::create_dir_all(&container.process.cwd).ok();
    }
}

pub(super) fn become_command(plan: &Plan) -> io::Result<Infallible> {
    let process = plan.process();
    let image = match (plan.isolation(), plan.root()) {
        (Isolation::Plain, RootFiles::Directory(image)) => image,
        _ => Path::new("/"),
    };
    let cwd = match plan {
        Plan::Start { isolation: Isolation::Plain, base, .. }
        | Plan::Exec { isolation: Isolation::Plain, base, .. } => plain_directory(base, image, &process.cwd),
        Plan::Start { .. } | Plan::Exec { .. } => process.cwd.clone(),
    };
    std::env::set_current_dir(&cwd).map_err(|error| {
        let reason = reason(&error);
        io::Error::other(format!("chdir to cwd ({cwd:?}) set in config.json failed: {reason}"))
    })?;
    let name = process.argv.first().ok_or_else(|| io::Error::other("no command specified"))?;
    let path = process.env.iter().find(|(key, _)| key == "PATH").map(|(_, value)| value.as_str());
    let program = find(name, path, image)?;
    let mut command = Command::new(program);
    command.arg0(name).args(&process.argv[1..]).env_clear().envs(process.env.iter().map(|(key, value)| (key, value)));
    let failure = command.exec();
    Err(io::Error::other(format!("exec {name}: {}", reason(&failure))))
}

/// Without a root of its own a container's absolute paths are the machine's; those it has as a link in its directory
/// are its own, then those of its image.
fn plain_directory(base: &Path, image: &Path, cwd: &Path) -> PathBuf {
    let own = base.join(within(cwd));
    if own.is_dir() || cwd == Path::new("/") { own } else { image.join(within(cwd)) }
}

/// An absolute path as one that another root can be put before.
fn within(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

/// The program of this name. `image` is where absolute paths begin: for a plain process its image, which is not its
/// root.
fn find(name: &str, path: Option<&str>, image: &Path) -> io::Result<PathBuf> {
    let failure = |reason: &str| io::Error::other(format!("exec: {name:?}: {reason}"));
    let is_program = |path: &Path| -> io::Result<()> {
        let metadata = path.metadata()?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if metadata.permissions().mode() & 0o111 == 0 {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(())
    };
    if name.contains('/') {
        let program = if name.starts_with('/') { image.join(within(Path::new(name))) } else { name.into() };
        return match is_program(&program) {
            Ok(()) => Ok(program),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(failure(&format!("stat {name}: no such file or directory")))
            }
            Err(error) => Err(failure(&reason(&error))),
        };
    }
    let directories = path.unwrap_or_default().split(':').filter(|directory| !directory.is_empty());
    let programs = directories.map(|directory| image.join(within(Path::new(directory))).join(name));
    programs
        .into_iter()
        .find(|program| is_program(program).is_ok())
        .ok_or_else(|| failure("executable file not found in $PATH"))
}

/// The system's own words for an error, as Go prints them.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or directory".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::IsADirectory => "is a directory".to_owned(),
        io::ErrorKind::NotADirectory => "not a directory".to_owned(),
        _ if error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => "exec format error".to_owned(),
        _ => error.to_string(),
    }
}

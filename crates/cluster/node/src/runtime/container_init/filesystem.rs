//! A container's root: one overlay per top-level directory of its image, volumes at their paths, fresh /proc, /dev.
//!
//! One overlay of a whole `/` is not possible without root, and would show empty directories where other file systems
//! are mounted; so too for a directory below with mounts in it, which is taken apart in the same way. What the container writes outside its volumes is kept in memory and ends with it.

use std::fs::DirEntry;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Gid, Mode, OFlags, Uid};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};

use super::super::plan::{ContainerSpec, Isolation, Mount, RootFiles};
use super::super::within_root::{create_directory, create_file, open_directory, resolve};

/// Made anew for each container, whatever the image has there.
const FRESH: [&str; 3] = ["dev", "proc", "sys"];
/// This machine's own, and of no use or harmful to a container.
const FRESH_ON_HOST: [&str; 3] = ["lost+found", "run", "tmp"];
const DEVICES: [&str; 6] = ["full", "null", "random", "tty", "urandom", "zero"];
/// A container sees the machine's own.
const SYS: &str = "/sys";

/// Makes the container's root this process's root. `base` is any directory: what is mounted there no one else sees.
pub(super) fn build(base: &Path, container: &ContainerSpec, isolation: Isolation) -> io::Result<()> {
    rustix::mount::mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(|error| because("make mounts private", error))?;
    let mut mounts = resolved(&container.mounts)?;
    mount("tmpfs", base, "tmpfs", MountFlags::NODEV, "mode=755")?;
    let root = base.join("root");
    std::fs::create_dir(&root)?;
    rustix::mount::mount_bind(&root, &root)?;
    let layers = Layers { base, isolation, mount_points: mount_points()? };
    match &container.root {
        RootFiles::Host => layers.show_entries(Path::new("/"), Path::new(""), &[FRESH, FRESH_ON_HOST].concat())?,
        RootFiles::Directory(directory) => layers.show_entries(directory, Path::new(""), &FRESH)?,
    }
    for (name, mode) in [("dev", 0o755), ("proc", 0o555), ("sys", 0o555), ("run", 0o755), ("tmp", 0o1777)] {
        let directory = root.join(name);
        if !directory.exists() {
            std::fs::create_dir(&directory)?;
            std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(mode))?;
        }
    }
    devices(&root.join("dev"))?;
    // Not every machine lets itself be looked at; nothing that runs here depends on it.
    rustix::mount::mount_bind_recursive(SYS, root.join("sys")).ok();
    mount("proc", &root.join("proc"), "proc", MountFlags::NODEV | MountFlags::NOSUID | MountFlags::NOEXEC, "")?;
    let machine = rustix::fs::open("/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    std::env::set_current_dir(&root)?;
    // The machine's root is now mounted over the container's. No path of the container leads there, only this process's
    // current directory.
    rustix::process::pivot_root(".", ".").map_err(|error| because("pivot to the container's root", error))?;
    rustix::process::fchdir(machine)?;
    for volume in &mut mounts {
        let target = bind(volume);
        volume.target = target.map_err(|error| {
            because(&format!("mount {} at {}", volume.source.display(), volume.target.display()), error)
        })?;
    }
    rustix::mount::unmount(".", UnmountFlags::DETACH)?;
    std::env::set_current_dir("/")?;
    if container.read_only_root {
        make_read_only(&mounts)?;
    }
    Ok(())
}

/// Sources with every link followed, as later their paths are looked at from another root.
fn resolved(mounts: &[Mount]) -> io::Result<Vec<Mount>> {
    let resolve = |mount: &Mount| {
        let source = mount.source.canonicalize();
        let source = source.map_err(|error| because(&format!("find volume at {}", mount.source.display()), error))?;
        Ok(Mount { source, ..mount.clone() })
    };
    let mut mounts: Vec<Mount> = mounts.iter().map(resolve).collect::<io::Result<_>>()?;
    // The outer before the inner.
    mounts.sort_by(|left, right| left.target.cmp(&right.target));
    Ok(mounts)
}

/// Where overlays are made, and what they must not span.
struct Layers<'a> {
    base: &'a Path,
    isolation: Isolation,
    /// Of this machine. An overlay would hide what is mounted below its directory, and without root is refused.
    mount_points: Vec<PathBuf>,
}

impl Layers<'_> {
    /// Shows every entry of `image` in the container's directory `relative`.
    fn show_entries(&self, image: &Path, relative: &Path, left_out: &[&str]) -> io::Result<()> {
        for entry in std::fs::read_dir(image)? {
            let entry = entry?;
            if !left_out.iter().any(|left_out| entry.file_name() == *left_out) {
                self.show_unless_gone(&entry, relative)?;
            }
        }
        Ok(())
    }

    /// What others have on this machine comes and goes, such as the directories of another node's containers.
    fn show_unless_gone(&self, entry: &DirEntry, relative: &Path) -> io::Result<()> {
        match self.show(entry, relative) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && entry.metadata().is_err() => Ok(()),
            shown => shown,
        }
    }

    fn show(&self, entry: &DirEntry, relative: &Path) -> io::Result<()> {
        let (lower, relative) = (entry.path(), relative.join(entry.file_name()));
        let target = self.base.join("root").join(&relative);
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            symlink(std::fs::read_link(&lower)?, &target)?;
        } else if kind.is_dir() {
            std::fs::create_dir(&target)?;
            self.show_directory(&lower, &relative, &target)?;
        } else if kind.is_file() {
            std::fs::File::create(&target)?;
            // Some are not for users without rights: such a one is empty.
            rustix::mount::mount_bind(&lower, &target).ok();
        }
        Ok(())
    }

    fn show_directory(&self, lower: &Path, relative: &Path, target: &Path) -> io::Result<()> {
        let model = lower.metadata()?;
        let below = |point: &PathBuf| point.starts_with(lower) && point != lower;
        let shown = if self.mount_points.iter().any(below) {
            look_alike(target, &model)?;
            self.show_entries(lower, relative, &[])
        } else {
            let (upper, work) = (self.base.join("upper").join(relative), self.base.join("work").join(relative));
            std::fs::create_dir_all(&upper)?;
            std::fs::create_dir_all(&work)?;
            look_alike(&upper, &model)?;
            let extended = if self.isolation == Isolation::Rootless { ",userxattr" } else { "" };
            let [lower, upper, work] = [lower, &upper, &work].map(escaped);
            let options = format!("lowerdir={lower},upperdir={upper},workdir={work}{extended}");
            mount("overlay", target, "overlay", MountFlags::empty(), &options)
        };
        match shown {
            // A directory that this user may not read, such as /root, is empty for the container.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            // Not every file system can be a layer. What is mounted further down is seldom missed: it is shown as it
            // is, or not at all.
            Err(_) if self.mount_points.iter().any(|point| point == lower) => {
                rustix::mount::mount_bind_recursive(lower, target).ok();
                Ok(())
            }
            shown => shown,
        }
    }
}

fn mount_points() -> io::Result<Vec<PathBuf>> {
    let table = std::fs::read_to_string("/proc/self/mountinfo")?;
    // Spaces in paths are written as \040: a directory with such a mount below is overlaid, and that mount is hidden.
    Ok(table.lines().filter_map(|line| line.split(' ').nth(4)).map(PathBuf::from).collect())
}

/// An overlay's top directory is its upper one: it takes owner and mode of the one below.
fn look_alike(directory: &Path, model: &std::fs::Metadata) -> io::Result<()> {
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(model.mode() & 0o7777))?;
    // Users that do not exist in this user namespace cannot own anything in it.
    rustix::fs::chownat(
        CWD,
        directory,
        Some(Uid::from_raw(model.uid())),
        Some(Gid::from_raw(model.gid())),
        rustix::fs::AtFlags::empty(),
    )
    .ok();
    Ok(())
}

fn escaped(path: &Path) -> String {
    path.display().to_string().replace('\\', "\\\\").replace(':', "\\:").replace(',', "\\,")
}

fn devices(dev: &Path) -> io::Result<()> {
    mount("tmpfs", dev, "tmpfs", MountFlags::NOSUID, "mode=755")?;
    for name in DEVICES {
        std::fs::File::create(dev.join(name))?;
        rustix::mount::mount_bind(Path::new("/dev").join(name), dev.join(name))?;
    }
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("ptmx", "pts/ptmx"),
    ] {
        symlink(target, dev.join(name))?;
    }
    std::fs::create_dir(dev.join("pts"))?;
    let secure = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount("devpts", &dev.join("pts"), "devpts", secure, "newinstance,ptmxmode=0666,mode=0620")?;
    std::fs::create_dir(dev.join("shm"))?;
    mount("shm", &dev.join("shm"), "tmpfs", secure | MountFlags::NODEV, "mode=1777,size=64m")
}

/// Binds a volume, whose source is a path in the current directory, and returns where the links of its target lead.
fn bind(volume: &Mount) -> io::Result<PathBuf> {
    let source = Path::new(".").join(volume.source.strip_prefix("/").unwrap_or(&volume.source));
    let target = resolve(Path::new("/"), &volume.target)?;
    let (Some(parent), Some(name)) = (target.parent(), target.file_name()) else {
        return Err(io::Error::other("not a path below the container's root"));
    };
    // A directory created in /sys is created on the machine: in /sys/fs/cgroup it is a control group.
    let create = !target.starts_with(SYS);
    let parent = open_directory(Path::new("/"), parent, create)?;
    let open = || rustix::fs::openat(&parent, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
    let opened = match open() {
        Err(rustix::io::Errno::NOENT) if create => {
            if source.is_dir() {
                create_directory(&parent, name)?;
            } else {
                create_file(&parent, name)?;
            }
            open()
        }
        opened => opened,
    };
    rustix::mount::mount_bind_recursive(&source, path_of(&opened?))?;
    if volume.read_only {
        // Opened again: the first descriptor is of what the volume hides.
        remount_read_only(&path_of(&open()?))?;
    }
    Ok(target)
}

/// A path that leads to what is open, whatever is moved or linked meanwhile.
fn path_of(descriptor: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", descriptor.as_raw_fd()).into()
}

/// In a user namespace the flags that a mount came with may not be dropped: they are said again.
fn remount_read_only(target: &Path) -> io::Result<()> {
    let kept = rustix::fs::statvfs(target)?.f_flag;
    let known = [
        (rustix::fs::StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (rustix::fs::StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (rustix::fs::StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (rustix::fs::StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (rustix::fs::StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (rustix::fs::StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ];
    let mut flags = MountFlags::BIND | MountFlags::RDONLY;
    for (is, again) in known {
        if kept.contains(is) {
            flags |= again;
        }
    }
    Ok(rustix::mount::mount_remount(target, flags, c"")?)
}

/// `readOnlyRootFilesystem`: everything but volumes and what the system itself needs.
fn make_read_only(mounts: &[Mount]) -> io::Result<()> {
    let mut targets = vec![PathBuf::from("/")];
    for entry in std::fs::read_dir("/")? {
        let entry = entry?;
        if entry.file_type()?.is_dir() && !FRESH.iter().any(|fresh| entry.file_name() == *fresh) {
            targets.push(entry.path());
        }
    }
    for target in targets.iter().filter(|target| !mounts.iter().any(|mount| mount.target == **target)) {
        match remount_read_only(target) {
            // A directory of the root itself, not a mount.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
            done => done?,
        }
    }
    Ok(())
}

/// Without namespaces: the mount paths are links in the container's directory.
pub(super) fn link_mounts(base: &Path, container: &ContainerSpec) -> io::Result<()> {
    for volume in resolved(&container.mounts)? {
        let link = base.join(volume.target.strip_prefix("/").unwrap_or(&volume.target));
        // A mount inside another one: its parent is a link, and the volume is the outer one's owner's to change.
        if let Some(parent) = link.parent() {
            std::fs::create_dir_all(parent)?;
        }
        match symlink(&volume.source, &link) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            done => done?,
        }
    }
    Ok(())
}

fn mount(source: &str, target: &Path, kind: &str, flags: MountFlags, options: &str) -> io::Result<()> {
    let options = std::ffi::CString::new(options)?;
    rustix::mount::mount(source, target, kind, flags, options.as_c_str())
        .map_err(|error| because(&format!("mount {kind} at {}", target.display()), error))
}

fn because(what: &str, error: impl Into<io::Error>) -> io::Error {
    let error = error.into();
    io::Error::new(error.kind(), format!("failed to {what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_removed_from_the_machine_meanwhile_is_left_out() {
        let dir = std::env::temp_dir().join(format!("boathook-filesystem-{}", std::process::id()));
        let image = dir.join("image");
        std::fs::create_dir_all(dir.join("root")).unwrap();
        std::fs::create_dir_all(image.join("passing")).unwrap();
        std::os::unix::fs::symlink("passing", image.join("link")).unwrap();
        let entries: Vec<_> = std::fs::read_dir(&image).unwrap().map(Result::unwrap).collect();
        std::fs::remove_dir_all(&image).unwrap();
        // As if something were mounted below it: it is taken apart.
        let mount_points = vec![image.join("passing/mounted")];
        let layers = Layers { base: &dir, isolation: Isolation::Root, mount_points };
        for entry in &entries {
            layers.show_unless_gone(entry, Path::new("")).unwrap();
        }
        std::fs::create_dir_all(&image).unwrap();
        std::fs::create_dir(image.join("there")).unwrap();
        let there = std::fs::read_dir(&image).unwrap().next().unwrap().unwrap();
        let refused = layers.show_unless_gone(&there, Path::new("no/such/directory"));
        assert_eq!(refused.map_err(|error| error.kind()), Err(io::ErrorKind::NotFound), "it is there, and not shown");
        std::fs::remove_dir_all(dir).unwrap();
    }
}

//! Containers as real processes, in each way of keeping them apart that this machine permits.
// The lint's exception for tests does not know a test without the usual harness.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use boathook_node::runtime::container::{Container, Runtime, Signal, Streams, new_id};
use boathook_node::runtime::plan::{ContainerSpec, Isolation, Mount, Process, RootFiles};
use libtest_mimic::{Arguments, Trial};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, getpgid, pidfd_open};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The argument with which this program is a node that another test kills.
const VICTIM: &str = "a-node-to-be-killed";
/// The argument with which this program is a node that prints the signals that its containers ignore.
const SIGNALS: &str = "a-node-that-prints-signals";

fn main() {
    boathook_node::container_init::run_if_asked();
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, role, dir, isolation] = arguments.as_slice() {
        let (dir, isolation) = (Path::new(dir), serde_json::from_str(isolation).unwrap());
        match role.as_str() {
            VICTIM => return be_a_victim(dir, isolation),
            SIGNALS => return print_ignored_signals(dir, isolation),
            _ => {}
        }
    }
    let mut trials = Vec::new();
    for isolation in [Isolation::Root, Isolation::Rootless, Isolation::Plain] {
        let permitted = permitted(isolation);
        let mut add = |name: &str, test: fn(Isolation)| {
            let name = format!("{isolation:?}::{name}");
            let trial = Trial::test(name, move || {
                test(isolation);
                Ok(())
            });
            trials.push(trial.with_ignored_flag(!permitted));
        };
        add("a_command_ends_with_its_exit_code", a_command_ends_with_its_exit_code);
        add("a_missing_command_is_reported_as_runc_does", a_missing_command_is_reported_as_runc_does);
        add("an_exec_has_stdin_and_an_exit_code", an_exec_has_stdin_and_an_exit_code);
        add("an_exec_with_a_terminal_sees_its_size", an_exec_with_a_terminal_sees_its_size);
        add("a_signal_reaches_the_command", a_signal_reaches_the_command);
        add("a_kill_ends_every_process", a_kill_ends_every_process);
        add("killing_the_node_ends_the_container", killing_the_node_ends_the_container);
        add("a_command_starts_with_default_signals", a_command_starts_with_default_signals);
        add("a_killed_helper_is_replaced", a_killed_helper_is_replaced);
        add("signals_of_the_nodes_terminal_miss_containers", signals_of_the_nodes_terminal_miss_containers);
        add("a_killed_keeper_takes_its_command_along", a_killed_keeper_takes_its_command_along);
        add("a_dropped_node_leaves_no_process", a_dropped_node_leaves_no_process);
        add("a_volume_is_seen_at_its_path", a_volume_is_seen_at_its_path);
        add("another_user_reaches_a_volume_of_a_private_node", another_user_reaches_a_volume_of_a_private_node);
        if isolation == Isolation::Plain {
            add("an_image_has_its_own_programs_and_no_others", an_image_has_its_own_programs_and_no_others);
        } else {
            add("the_command_is_pid_1_and_an_exec_sees_it", the_command_is_pid_1_and_an_exec_sees_it);
            add("files_outside_volumes_stay_in_the_container", files_outside_volumes_stay_in_the_container);
            add("a_read_only_volume_cannot_be_written", a_read_only_volume_cannot_be_written);
            add("a_container_runs_as_the_user_it_names", a_container_runs_as_the_user_it_names);
            add("a_missing_working_directory_is_made", a_missing_working_directory_is_made);
            add("a_read_only_root_still_has_writable_volumes", a_read_only_root_still_has_writable_volumes);
            add("the_machines_root_can_be_a_volume", the_machines_root_can_be_a_volume);
            add("links_of_an_image_lead_no_mount_to_the_machine", links_of_an_image_lead_no_mount_to_the_machine);
            add(
                "a_volume_at_a_link_is_writable_in_a_read_only_root",
                a_volume_at_a_link_is_writable_in_a_read_only_root,
            );
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Some machines permit no namespaces. A failure anywhere else is one of the launcher, and fails its tests.
fn permitted(isolation: Isolation) -> bool {
    let is_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    let must_be = match isolation {
        Isolation::Plain => true,
        Isolation::Root => is_ci && rustix::process::geteuid().is_root(),
        Isolation::Rootless => false,
    };
    if must_be {
        return true;
    }
    let dir = Scratch::new();
    let tried = run(async { Runtime::with_isolation(&dir.0, isolation).unwrap().try_out().await });
    if let Err(refusal) = &tried {
        eprintln!("{isolation:?} is not permitted here: {refusal}");
    }
    tried.is_ok()
}

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime
        .block_on(async { tokio::time::timeout(Duration::from_secs(600), test).await.expect("the test does not end") })
}

struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        let dir = std::env::temp_dir().join(format!("boathook-node-{}", &new_id()[..12]));
        std::fs::create_dir_all(&dir).unwrap();
        Scratch(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn spec(argv: &[&str]) -> ContainerSpec {
    let argv = argv.iter().map(|&argument| argument.to_owned()).collect();
    let env = vec![("PATH".to_owned(), PATH.to_owned())];
    let process = Process { argv, env, cwd: "/".into(), ..Process::default() };
    let (root, hostname) = (RootFiles::Host, "web-0".to_owned());
    ContainerSpec { root, read_only_root: false, mounts: Vec::new(), hostname, process }
}

fn shell(script: &str) -> ContainerSpec {
    spec(&["sh", "-c", script])
}

struct Node {
    runtime: Runtime,
    dir: Scratch,
}

impl Node {
    fn new(isolation: Isolation) -> Node {
        let dir = Scratch::new();
        Node { runtime: Runtime::with_isolation(&dir.0, isolation).unwrap(), dir }
    }

    async fn start(&self, spec: ContainerSpec) -> (Container, Streams) {
        self.runtime.start(new_id(), spec, false).await.unwrap()
    }

    /// Runs to the end: exit code, stdout, stderr.
    async fn finish(&self, spec: ContainerSpec) -> (i32, String, String) {
        let (container, streams) = self.start(spec).await;
        let (out, err) = read(streams).await;
        (container.running.wait().await.code, out, err)
    }

    fn volume(&self, name: &str) -> PathBuf {
        let volume = self.dir.0.join(name);
        std::fs::create_dir_all(&volume).unwrap();
        volume
    }
}

async fn read(mut streams: Streams) -> (String, String) {
    let (mut out, mut err) = (String::new(), String::new());
    streams.stdout.read_to_string(&mut out).await.unwrap();
    if let Some(mut stderr) = streams.stderr {
        stderr.read_to_string(&mut err).await.unwrap();
    }
    (out, err)
}

async fn line(streams: &mut Streams) -> String {
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        line.push(streams.stdout.read_u8().await.unwrap());
    }
    String::from_utf8(line).unwrap().trim().to_owned()
}

fn argv(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn a_command_ends_with_its_exit_code(isolation: Isolation) {
    run(async {
        let node = Node::new(isolation);
        let (code, out, err) = node.finish(shell("echo out; echo err >&2; exit 7")).await;
        assert_eq!((code, out.as_str(), err.as_str()), (7, "out\n", "err\n"));
        let killed = node.finish(shell("sh -c 'kill -9 $$'; exit $?")).await;
        assert_eq!(killed.0, 137);
    });
}

fn a_missing_command_is_reported_as_runc_does(isolation: Isolation) {
    run(async {
        let node = Node::new(isolation);
        let failure = |words: &'static [&str]| node.runtime.start(new_id(), spec(words), false);
        let missing = failure(&["no-such-command"]).await.err().unwrap();
        assert_eq!(missing.0, r#"exec: "no-such-command": executable file not found in $PATH"#);
        let path = failure(&["/no/such"]).await.err().unwrap();
        assert_eq!(path.0, r#"exec: "/no/such": stat /no/such: no such file or directory"#);
        let forbidden = failure(&["/etc/passwd"]).await.err().unwrap();
        assert_eq!(forbidden.0, r#"exec: "/etc/passwd": permission denied"#);
    });
}

fn an_exec_has_stdin_and_an_exit_code(isolation: Isolation) {
    run(async {
        let node = Node::new(isolation);
        let (container, _streams) = node.start(shell("exec sleep 1000")).await;
        let (exec, mut streams) = container.exec(argv(&["sh", "-c", "cat; exit 3"]), true, false).await.unwrap();
        let mut stdin = streams.stdin.take().unwrap();
        stdin.write_all(b"hello").await.unwrap();
        drop(stdin);
        assert_eq!(read(streams).await.0, "hello");
        assert_eq!(exec.wait().await.code, 3);
        assert!(container.running.exit().is_none());
        let missing = container.exec(argv(&["no-such-command"]), false, false).await.err().unwrap();
        assert_eq!(missing.0, r#"exec: "no-such-command": executable file not found in $PATH"#);
        container.running.kill();
        container.running.wait().await;
    });
}

fn an_exec_with_a_terminal_sees_its_size(isolation: Isolation) {
    run(async {
        let node = Node::new(isolation);
        let (container, _streams) = node.start(shell("exec sleep 1000")).await;
        let script = "tty -s && read line && stty size";
        let (exec, mut streams) = container.exec(argv(&["sh", "-c", script]), true, true).await.unwrap();
        streams.terminal.take().unwrap().resize(91, 33).unwrap();
        streams.stdin.take().unwrap().write_all(b"go\n").await.unwrap();
        let (out, _) = read(streams).await;
        assert!(out.ends_with("33 91\r\n"), "{out:?}");
        assert_eq!(exec.wait().await.code, 0);
    });
}

fn a_signal_reaches_the_command(isolation: Isolation) {
    run(async {
        let node = Node::new(isolation);
        let (container, mut streams) =
            node.start(shell("trap 'echo got it; exit 5' TERM; echo ready; while :; do sleep 0.05; done")).await;
        assert_eq!(line(&mut streams).await, "ready");
        container.running.signal(Signal::TERM);
        assert_eq!(line(&mut streams).await, "got it");
        assert_eq!(container.running.wait().await.code, 5);
    });
}

/// A file of a volume that a process of the container holds locked tells from outside whether that process lives.
async fn unlocked(path: &Path) {
    let file = std::fs::File::open(path).unwrap();
    tokio::task::spawn_blocking(move || file.lock().unwrap()).await.unwrap();
}

fn a_kill_ends_every_process(isolation: Isolation) {
    run(async {
        let node = Node::new(isolation);
        let volume = node.volume("locks");
        let mut spec = shell("(setsid flock data/lock sh -c 'echo locked; exec sleep 1000' &) ; exec sleep 1000");
        spec.mounts = vec![Mount { source: volume.clone(), target: "/data".into(), read_only: false }];
        let (container, mut streams) = node.start(spec).await;
        assert_eq!(line(&mut streams).await, "locked");
        assert!(std::fs::File::open(volume.join("lock")).unwrap().try_lock().is_err());
        container.running.kill();
        assert_eq!(container.running.wait().await.code, 137);
        unlocked(&volume.join("lock")).await;
    });
}

fn killing_the_node_ends_the_container(isolation: Isolation) {
    run(async {
        let dir = Scratch::new();
        let victim = std::process::Command::new(std::env::current_exe().unwrap())
            .args([VICTIM, dir.0.to_str().unwrap(), &serde_json::to_string(&isolation).unwrap()])
            .stdout(std::process::Stdio::piped())
            .spawn();
        let mut victim = victim.unwrap();
        let mut said = String::new();
        BufReader::new(victim.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "locked\n");
        victim.kill().unwrap();
        victim.wait().unwrap();
        unlocked(&dir.0.join("locks/lock")).await;
    });
}

fn be_a_victim(dir: &Path, isolation: Isolation) {
    run(async {
        let node = Node { runtime: Runtime::with_isolation(dir, isolation).unwrap(), dir: Scratch(dir.to_owned()) };
        let mut spec = shell("(setsid flock data/lock sh -c 'echo locked; exec sleep 1000' &) ; exec sleep 1000");
        let source = node.volume("locks");
        spec.mounts = vec![Mount { source, target: "/data".into(), read_only: false }];
        let (container, mut streams) = node.start(spec).await;
        println!("{}", line(&mut streams).await);
        container.running.wait().await
    });
}

fn a_command_starts_with_default_signals(isolation: Isolation) {
    let dir = Scratch::new();
    let printed = std::process::Command::new("sh")
        .args(["-c", r#"trap '' HUP INT CHLD USR1; exec "$@""#, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args([SIGNALS, dir.0.to_str().unwrap(), &serde_json::to_string(&isolation).unwrap()])
        .output();
    let printed = String::from_utf8(printed.unwrap().stdout).unwrap();
    assert_eq!(printed, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n".repeat(2));
}

/// Of a container's command, and of an exec.
fn print_ignored_signals(dir: &Path, isolation: Isolation) {
    run(async {
        let node = Node { runtime: Runtime::with_isolation(dir, isolation).unwrap(), dir: Scratch(dir.to_owned()) };
        let signals = ["grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"];
        print!("{}", node.finish(spec(&signals)).await.1);
        let (container, _streams) = node.start(shell("exec sleep 1000")).await;
        let (_, streams) = container.exec(argv(&signals), false, false).await.unwrap();
        print!("{}", read(streams).await.0);
    });
}

/// The parent of a process of this machine.
fn parent(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn kill(pid: u32) {
    let pid = Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
}

fn pidfd(pid: u32) -> OwnedFd {
    pidfd_open(Pid::from_raw(pid.cast_signed()).unwrap(), PidfdFlags::empty()).unwrap()
}

async fn ended(process: OwnedFd) {
    let wait = move || {
        let mut fds = [PollFd::new(&process, PollFlags::IN)];
        // Shorter than `run` waits: a blocked thread would outlast it.
        let timeout = Timespec { tv_sec: 30, tv_nsec: 0 };
        let ended = rustix::io::retry_on_intr(|| rustix::event::poll(&mut fds, Some(&timeout))).unwrap();
        assert_eq!(ended, 1, "it ends within 30 s");
    };
    tokio::task::spawn_blocking(wait).await.unwrap();
}

fn a_killed_helper_is_replaced(isolation: Isolation) {
    run(async {
        let node = Node::new(isolation);
        let (container, _streams) = node.start(shell("exec sleep 1000")).await;
        let helper = parent(parent(container.running.pid));
        assert_eq!(parent(helper), std::process::id());
        let process = pidfd(helper);
        kill(helper);
        ended(process).await;
        let (exec, _streams) = container.exec(argv(&["sh", "-c", "exit 4"]), false, false).await.unwrap();
        assert_eq!(exec.wait().await.code, 4);
        assert!(container.running.exit().is_none(), "its keeper needs no helper");
        container.running.kill();
        assert_eq!(container.running.wait().await.code, 137);
    });
}

/// Ctrl-C reaches a process group.
fn signals_of_the_nodes_terminal_miss_containers(isolation: Isolation) {
    run(async {
        let node = Node::new(isolation);
        let (container, _streams) = node.start(shell("exec sleep 1000")).await;
        let keeper = parent(container.running.pid);
        for pid in [container.running.pid, keeper, parent(keeper)] {
            let group = getpgid(Pid::from_raw(pid.cast_signed())).unwrap();
            assert_ne!(group, getpgid(None).unwrap());
        }
    });
}

fn a_killed_keeper_takes_its_command_along(isolation: Isolation) {
    run(async {
        let node = Node::new(isolation);
        let (container, streams) = node.start(shell("exec sleep 1000")).await;
        kill(parent(container.running.pid));
        assert_eq!(container.running.wait().await.code, 137);
        // Its end: the command held the other one.
        read(streams).await;
    });
}

fn a_dropped_node_leaves_no_process(isolation: Isolation) {
    run(async {
        let node = Node::new(isolation);
        let (container, _streams) = node.start(shell("exec sleep 1000")).await;
        let pid = container.running.pid;
        let processes = [pid, parent(pid), parent(parent(pid))].map(pidfd);
        drop((node, container));
        for process in processes {
            ended(process).await;
        }
    });
}

fn a_volume_is_seen_at_its_path(isolation: Isolation) {
    run(async {
        let node = Node::new(isolation);
        let volume = node.volume("data");
        std::fs::write(volume.join("there"), "before").unwrap();
        // Relative to the directory that a container starts in: true of links and of mounts.
        let mut spec = shell("cat var/run/deep/data/there; echo new > var/run/deep/data/written");
        let target = PathBuf::from("/var/run/deep/data");
        spec.mounts = vec![Mount { source: volume.clone(), target, read_only: false }];
        let (code, out, err) = node.finish(spec).await;
        assert_eq!((code, out.as_str(), err.as_str()), (0, "before", ""));
        assert_eq!(std::fs::read_to_string(volume.join("written")).unwrap(), "new\n");
    });
}

fn another_user_reaches_a_volume_of_a_private_node(isolation: Isolation) {
    run(async {
        let node = Node::new(isolation);
        let volume = node.volume("data");
        let mode = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        mode(&volume, 0o777);
        let parents = [&node.dir.0, &node.dir.0.join("plain")];
        for parent in parents {
            mode(parent, 0o700);
        }
        node.runtime.open_passages(&parents.map(Clone::clone)).unwrap();
        let mut spec = shell("echo new > data/written");
        (spec.process.uid, spec.process.gid) = (1234, 5678);
        spec.mounts = vec![Mount { source: volume.clone(), target: "/data".into(), read_only: false }];
        let (code, _, err) = node.finish(spec).await;
        assert_eq!((code, err.as_str()), (0, ""));
        assert_eq!(std::fs::read_to_string(volume.join("written")).unwrap(), "new\n");
        let seen = std::fs::metadata(&node.dir.0).unwrap().permissions().mode();
        assert_eq!(seen & 0o066, 0, "other users may list the node's directory");
    });
}

/// Plain, where they must be looked for; elsewhere the image is the root.
fn an_image_has_its_own_programs_and_no_others(isolation: Isolation) {
    run(async {
        let node = Node::new(isolation);
        let image = node.volume("image");
        std::fs::create_dir(image.join("bin")).unwrap();
        std::fs::write(image.join("bin/hello"), "#!/bin/sh\necho ahoy; read line\n").unwrap();
        std::fs::set_permissions(image.join("bin/hello"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let of_image = |words: &[&str]| ContainerSpec { root: RootFiles::Directory(image.clone()), ..spec(words) };
        assert_eq!(node.finish(of_image(&["/bin/hello"])).await.1, "ahoy\n");
        let (container, _streams) = node.runtime.start(new_id(), of_image(&["hello"]), true).await.unwrap();
        let (_, streams) = container.exec(argv(&["hello"]), false, false).await.unwrap();
        assert_eq!(read(streams).await.0, "ahoy\n");
        let missing = container.exec(argv(&["sh"]), false, false).await.err().unwrap();
        assert_eq!(missing.0, r#"exec: "sh": executable file not found in $PATH"#);
        let missing = container.exec(argv(&["/bin/sh"]), false, false).await.err().unwrap();
        assert_eq!(missing.0, r#"exec: "/bin/sh": stat /bin/sh: no such file or directory"#);
    });
}

fn the_command_is_pid_1_and_an_exec_sees_it(isolation: Isolation) {
    run(async {
        let node = Node::new(isolation);
        let (code, out, _) = node.finish(shell("echo $$ $(hostname)")).await;
        assert_eq!((code, out.as_str()), (0, "1 web-0\n"));
        let (container, _streams) = node.start(spec(&["sleep", "1000"])).await;
        let (_, streams) = container.exec(argv(&["cat", "/proc/1/comm"]), false, false).await.unwrap();
        assert_eq!(read(streams).await.0, "sleep\n");
    });
}

fn files_outside_volumes_stay_in_the_container(isolation: Isolation) {
    run(async {
        let node = Node::new(isolation);
        let script =
            "echo mine > /etc/boathook-test && cat /etc/boathook-test && touch /tmp/x && ls /dev/null /proc/self";
        let (code, out, err) = node.finish(shell(script)).await;
        assert_eq!((code, err.as_str()), (0, ""));
        assert!(out.starts_with("mine\n"));
        assert!(!Path::new("/etc/boathook-test").exists());
    });
}

fn a_read_only_volume_cannot_be_written(isolation: Isolation) {
    run(async {
        let node = Node::new(isolation);
        let mut spec = shell("echo x > /data/file");
        spec.mounts = vec![Mount { source: node.volume("data"), target: "/data".into(), read_only: true }];
        let (code, _, err) = node.finish(spec).await;
        assert_ne!(code, 0);
        assert!(err.contains("Read-only file system"), "{err}");
    });
}

fn a_container_runs_as_the_user_it_names(isolation: Isolation) {
    run(async {
        let node = Node::new(isolation);
        let mut spec = shell("echo $(id -u):$(id -g); exec sleep 1000");
        (spec.process.uid, spec.process.gid) = (1234, 5678);
        let (container, mut streams) = node.start(spec).await;
        assert_eq!(line(&mut streams).await, "1234:5678");
        let (_, streams) = container.exec(argv(&["id", "-u"]), false, false).await.unwrap();
        assert_eq!(read(streams).await.0, "1234\n");
    });
}

fn a_missing_working_directory_is_made(isolation: Isolation) {
    run(async {
        let node = Node::new(isolation);
        let mut spec = shell("pwd");
        (spec.process.uid, spec.process.cwd) = (1234, "/no/such/directory".into());
        let (code, out, err) = node.finish(spec).await;
        assert_eq!((code, out.as_str(), err.as_str()), (0, "/no/such/directory\n", ""));
    });
}

fn the_machines_root_can_be_a_volume(isolation: Isolation) {
    run(async {
        let node = Node::new(isolation);
        std::fs::write(node.dir.0.join("there"), "seen").unwrap();
        let mut spec = shell(&format!("cat /machine{}/there", node.dir.0.display()));
        spec.mounts = vec![Mount { source: "/".into(), target: "/machine".into(), read_only: true }];
        assert_eq!(node.finish(spec).await, (0, "seen".to_owned(), String::new()));
    });
}

fn a_read_only_root_still_has_writable_volumes(isolation: Isolation) {
    run(async {
        let node = Node::new(isolation);
        let mut spec =
            shell("echo x > /data/file && ! touch /etc/x 2>/dev/null && ! touch /x 2>/dev/null && echo good");
        spec.read_only_root = true;
        spec.mounts = vec![Mount { source: node.volume("data"), target: "/data".into(), read_only: false }];
        let (code, out, err) = node.finish(spec).await;
        assert_eq!((code, out.as_str()), (0, "good\n"), "{err}");
    });
}

/// A container of an image in this directory, with the programs of this machine.
fn of_image(image: &Path, script: &str) -> ContainerSpec {
    let programs = ["/bin", "/lib", "/lib64", "/usr"].into_iter().map(PathBuf::from).filter(|path| path.exists());
    let mounts = programs.map(|path| Mount { source: path.clone(), target: path, read_only: true });
    ContainerSpec { root: RootFiles::Directory(image.to_owned()), mounts: mounts.collect(), ..shell(script) }
}

fn links_of_an_image_lead_no_mount_to_the_machine(isolation: Isolation) {
    run(async {
        let node = Node::new(isolation);
        let (machine, volume) = (node.volume("machine"), node.volume("data"));
        std::fs::write(volume.join("there"), "seen").unwrap();
        let path = machine.display();
        let roots = ["/.machine", "", "/proc/self/cwd", "/proc/self/root", "/proc/1/root/proc/1/cwd", "../../../.."];
        for (number, root) in roots.iter().enumerate() {
            let image = node.volume(&format!("image-{number}"));
            std::fs::create_dir(image.join("var")).unwrap();
            std::os::unix::fs::symlink(format!("{root}{path}/directory"), image.join("var/run")).unwrap();
            std::os::unix::fs::symlink(format!("{root}{path}/file"), image.join("file")).unwrap();
            let mut spec = of_image(&image, "cat /var/run/secrets/token/there /file");
            for (source, target) in [(volume.clone(), "/var/run/secrets/token"), (volume.join("there"), "/file")] {
                spec.mounts.push(Mount { source, target: target.into(), read_only: true });
            }
            let started = node.runtime.start(new_id(), spec, false).await;
            let made = std::fs::read_dir(&machine).unwrap().flatten().map(|entry| entry.file_name());
            assert_eq!(
                made.collect::<Vec<_>>(),
                Vec::<std::ffi::OsString>::new(),
                "created on the machine by {root:?}"
            );
            // Where these links lead in a container depends on the process that follows them.
            if !root.starts_with("/proc") {
                assert_eq!(read(started.unwrap().1).await, ("seenseen".to_owned(), String::new()), "{root:?}");
            }
        }
    });
}

fn a_volume_at_a_link_is_writable_in_a_read_only_root(isolation: Isolation) {
    run(async {
        let node = Node::new(isolation);
        let (image, volume) = (node.volume("image"), node.volume("data"));
        std::fs::create_dir(image.join("srv")).unwrap();
        std::os::unix::fs::symlink("srv", image.join("data")).unwrap();
        let mut spec = of_image(&image, "echo x > /data/file; echo y > /srv/other && echo good");
        spec.read_only_root = true;
        spec.mounts.push(Mount { source: volume.clone(), target: "/data".into(), read_only: false });
        let (_, out, err) = node.finish(spec).await;
        assert_eq!((out.as_str(), err.as_str()), ("good\n", ""));
        assert_eq!(std::fs::read_to_string(volume.join("file")).unwrap(), "x\n");
    });
}

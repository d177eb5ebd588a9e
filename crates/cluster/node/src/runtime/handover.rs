//! Descriptors on their way from the node to `container-init`, through a socket.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};

const COUNT: usize = 6;

/// The descriptors that one process is started with.
pub(super) struct Handover {
    /// A memory file that holds the plan.
    pub(super) plan: OwnedFd,
    /// A pipe for answers. Every holder closes it when the command runs.
    pub(super) answers: OwnedFd,
    /// A socket. The node shuts its side down to end the process, and reads the exit code from it.
    pub(super) life: OwnedFd,
    /// The command's stdin, stdout and stderr.
    pub(super) stdio: [OwnedFd; 3],
}

impl Handover {
    pub(super) fn send(&self, socket: impl AsFd) -> io::Result<()> {
        let [stdin, stdout, stderr] = &self.stdio;
        let fds = [&self.plan, &self.answers, &self.life, stdin, stdout, stderr].map(AsFd::as_fd);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(COUNT))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&fds));
        // Descriptors travel with at least one byte.
        rustix::net::sendmsg(socket, &[IoSlice::new(&[0])], &mut ancillary, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Waits for the next one. `None`: the node has closed its end.
    pub(super) fn receive(socket: impl AsFd) -> io::Result<Option<Handover>> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(COUNT))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        let received =
            rustix::net::recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
        if received.bytes == 0 {
            return Ok(None);
        }
        let mut fds = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                fds.extend(rights);
            }
        }
        let fds: [OwnedFd; COUNT] = fds.try_into().map_err(|_| io::Error::other("descriptors were lost on the way"))?;
        let [plan, answers, life, stdin, stdout, stderr] = fds;
        Ok(Some(Handover { plan, answers, life, stdio: [stdin, stdout, stderr] }))
    }
}

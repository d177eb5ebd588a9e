//! The storage: it cuts what it is asked to, or fails, or hangs, or does not say that it did.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    World,
    objects::{Kind, Object},
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    #[default]
    Cuts,
    /// It cuts, and says so when it is in another mood.
    CutsSilently,
    Fails,
    Hangs,
}

#[derive(Default)]
pub(crate) struct Storage {
    pub(crate) mode: Mode,
    /// What was really so when each VolumeSnapshot was cut, by its UID.
    pub(crate) cuts: BTreeMap<String, Truth>,
}

/// How things were at a cut.
#[derive(Debug)]
pub(crate) struct Truth {
    /// The pods that used the claim, and what held each of them.
    pub(crate) users: BTreeMap<String, BTreeSet<String>>,
}

impl World {
    /// Whether the storage had anything to do.
    pub(crate) fn store(&mut self) -> bool {
        let mode = self.storage.mode;
        for key in self.server.keys(Kind::Volume) {
            let Some(object) = self.server.get(&key) else { continue };
            let Object::Volume(volume) = &*object else { continue };
            let uid = volume.metadata.uid.clone().unwrap_or_default();
            if volume.cut || volume.error.is_some() {
                continue;
            }
            let is_cut = self.storage.cuts.contains_key(&uid);
            match mode {
                Mode::Cuts | Mode::CutsSilently if !is_cut => {
                    let running = self.pods.pods.iter().filter(|pod| pod.running);
                    let users = running.map(|pod| (pod.uid.clone(), pod.frozen.clone())).collect();
                    self.storage.cuts.insert(uid, Truth { users });
                    return true;
                }
                Mode::Cuts => {
                    self.server.person_changes(&key, |object| {
                        if let Object::Volume(volume) = object {
                            volume.cut = true;
                        }
                    });
                    return true;
                }
                Mode::Fails if !is_cut => {
                    self.server.person_changes(&key, |object| {
                        if let Object::Volume(volume) = object {
                            volume.error = Some("disk full".to_owned());
                        }
                    });
                    return true;
                }
                Mode::CutsSilently | Mode::Fails | Mode::Hangs => {}
            }
        }
        false
    }
}

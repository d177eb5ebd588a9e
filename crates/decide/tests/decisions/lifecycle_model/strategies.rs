//! Kubernetes' Deployment controller: how RollingUpdate and Recreate move replicas.

use boathook_decide::deployment_lifecycle::Strategy;

use super::{World, api_server::Refused, deployment_controller::Sync, objects::Set};

/// How many replicas the new ReplicaSet should have now.
pub(crate) fn wanted(sync: &Sync, new: &Set) -> i32 {
    let deployment = &sync.deployment;
    match deployment.strategy {
        Strategy::Recreate => deployment.replicas,
        Strategy::RollingUpdate => {
            let room = deployment.replicas + deployment.surge() - sync.sets.iter().map(|set| set.replicas).sum::<i32>();
            match room {
                ..=0 => new.replicas,
                _ => new.replicas + room.min(deployment.replicas - new.replicas),
            }
        }
    }
}

impl World {
    pub(crate) fn roll(&mut self, sync: &mut Sync) -> Result<(), Refused> {
        let new = self.make_new_set(sync)?;
        let (has, replicas) = (sync.sets[new].replicas, sync.deployment.replicas);
        let to = if has > replicas { replicas } else { wanted(sync, &sync.sets[new]) };
        if self.move_set(sync, new, to)? {
            return Ok(());
        }
        let old = sync.old_sets();
        let count = |places: &[usize]| places.iter().map(|place| sync.sets[*place].replicas).sum::<i32>();
        let new_unavailable = sync.sets[new].replicas - sync.sets[new].available;
        let least = replicas - sync.deployment.unavailable();
        let all = count(&old) + sync.sets[new].replicas;
        let room = all - least - new_unavailable;
        if count(&old) > 0 && room > 0 {
            // Failures are not looked at here: it just has not scaled down.
            if self.shrink_unhealthy(sync, &old, room).and_then(|_| self.shrink_old(sync, &old, least)).is_ok() {
                return Ok(());
            }
        }
        if sync.deployment.is_complete(&sync.deployment.status) {
            self.clean_up(sync);
        }
        Ok(())
    }

    fn shrink_unhealthy(&mut self, sync: &mut Sync, old: &[usize], most: i32) -> Result<(), Refused> {
        let mut room = most;
        for place in old {
            let Set { replicas, available, .. } = sync.sets[*place];
            let by = room.min(replicas - available);
            if room > 0 && by > 0 {
                self.move_set(sync, *place, replicas - by)?;
                room -= by;
            }
        }
        Ok(())
    }

    fn shrink_old(&mut self, sync: &mut Sync, old: &[usize], least: i32) -> Result<(), Refused> {
        let mut room = sync.sets.iter().map(|set| set.available).sum::<i32>() - least;
        for place in old {
            let replicas = sync.sets[*place].replicas;
            if room > 0 && replicas > 0 {
                let by = replicas.min(room);
                self.move_set(sync, *place, replicas - by)?;
                room -= by;
            }
        }
        Ok(())
    }

    pub(crate) fn recreate(&mut self, sync: &mut Sync) -> Result<(), Refused> {
        let old = sync.old_sets();
        let mut moved = false;
        for place in &old {
            moved |= self.move_set(sync, *place, 0)?;
        }
        let new = sync.new_set().map(|place| sync.sets[place].uid.clone());
        let counted = old.iter().any(|place| sync.sets[*place].has > 0);
        let owned = |uid: &&String| sync.sets.iter().any(|set| set.uid == **uid) && Some(*uid) != new.as_ref();
        if moved || counted || sync.running.iter().any(|uid| owned(&uid)) {
            return Ok(());
        }
        let new = self.make_new_set(sync)?;
        let replicas = sync.deployment.replicas;
        self.move_set(sync, new, replicas)?;
        if sync.deployment.is_complete(&sync.deployment.status) {
            self.clean_up(sync);
        }
        Ok(())
    }

    /// Whether it thinks that it has scaled it.
    pub(crate) fn move_set(&mut self, sync: &mut Sync, place: usize, to: i32) -> Result<bool, Refused> {
        if sync.sets[place].replicas == to {
            return Ok(false);
        }
        self.write_size(sync, place, to)?;
        Ok(true)
    }

    /// The replicas, and how many the Deployment wants in all.
    pub(crate) fn write_size(&mut self, sync: &mut Sync, place: usize, to: i32) -> Result<(), Refused> {
        let mut next = sync.sets[place].clone();
        next.replicas = to;
        next.desired = Some(sync.deployment.replicas);
        next.most = Some(sync.deployment.replicas + sync.deployment.surge());
        if next != sync.sets[place] {
            sync.sets[place] = self.update_set(next)?;
        }
        Ok(())
    }
}

//! Kubernetes' Deployment controller: a Deployment that was scaled shares the difference out among its ReplicaSets.

use boathook_decide::deployment_lifecycle::Strategy;

use super::{World, api_server::Refused, deployment_controller::Sync, objects::Set};

impl World {
    pub(crate) fn scale(&mut self, sync: &mut Sync) -> Result<(), Refused> {
        let replicas = sync.deployment.replicas;
        let mut active: Vec<usize> = (0..sync.sets.len()).filter(|place| sync.sets[*place].replicas > 0).collect();
        let new = sync.new_set();
        let only = match active[..] {
            [] => new.or_else(|| sync.old_sets().into_iter().max_by_key(|place| sync.sets[*place].created)),
            [one] => Some(one),
            _ => None,
        };
        if let Some(only) = only {
            return self.move_set(sync, only, replicas).map(drop);
        }
        let full = |set: &Set| set.replicas == replicas && set.desired == Some(replicas) && set.available == replicas;
        if new.is_some_and(|new| full(&sync.sets[new])) {
            for old in sync.old_sets() {
                if sync.sets[old].replicas > 0 {
                    self.move_set(sync, old, 0)?;
                }
            }
            return Ok(());
        }
        if sync.deployment.strategy == Strategy::Recreate || active.is_empty() {
            return Ok(());
        }
        let allowed = if replicas > 0 { replicas + sync.deployment.surge() } else { 0 };
        let add = allowed - active.iter().map(|place| sync.sets[*place].replicas).sum::<i32>();
        // The largest first; of equals the newest if they grow, the oldest if they shrink.
        active.sort_by_key(|place| {
            let set = &sync.sets[*place];
            let age = set.created.as_second();
            (-set.replicas, if add > 0 { -age } else { age })
        });
        let mut added = 0;
        let mut sizes = vec![];
        for place in &active {
            let part = part(sync, &sync.sets[*place], add, added);
            sizes.push(sync.sets[*place].replicas + part);
            added += part;
        }
        sizes[0] = (sizes[0] + add - added).max(0);
        for (place, size) in active.into_iter().zip(sizes) {
            self.write_size(sync, place, size)?;
        }
        Ok(())
    }
}

/// The share of one ReplicaSet in what is added or taken away.
fn part(sync: &Sync, set: &Set, add: i32, added: i32) -> i32 {
    if set.replicas == 0 || add == 0 || add == added {
        return 0;
    }
    let deployment = &sync.deployment;
    let fraction = if deployment.replicas == 0 {
        -set.replicas
    } else {
        let before = set.most.filter(|most| *most > 0).unwrap_or(deployment.status.replicas);
        match before {
            0 => 0,
            _ => {
                let most = f64::from(deployment.replicas + deployment.surge());
                #[expect(clippy::cast_possible_truncation, reason = "counts of pods are small")]
                let size = (f64::from(set.replicas) * most / f64::from(before)).round() as i32;
                size - set.replicas
            }
        }
    };
    if add > 0 { fraction.min(add - added) } else { fraction.max(add - added) }
}

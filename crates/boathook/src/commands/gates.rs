//! `--feature-gates`: features by name, on or off.

use std::str::FromStr;

/// Every gate, with its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FeatureGates {
    /// PodNotification and Notification, but for the PodNotifications of hooks.
    pub(crate) container_notifier: bool,
}

impl Default for FeatureGates {
    fn default() -> Self {
        Self { container_notifier: true }
    }
}

impl FromStr for FeatureGates {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        let mut gates = Self::default();
        for gate in given.split(',').filter(|gate| !gate.is_empty()) {
            let (name, value) =
                gate.split_once('=').ok_or_else(|| format!("`{gate}`: write NAME=true or NAME=false"))?;
            let value = value.parse().map_err(|_| format!("`{gate}`: write {name}=true or {name}=false"))?;
            match name {
                "ContainerNotifier" => gates.container_notifier = value,
                _ => return Err(format!("unknown feature gate `{name}`: the only one is ContainerNotifier")),
            }
        }
        Ok(gates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_is_on_until_it_is_switched_off() {
        assert!("".parse::<FeatureGates>().unwrap().container_notifier);
        assert!(!"ContainerNotifier=false".parse::<FeatureGates>().unwrap().container_notifier);
        for wrong in ["ContainerNotifier", "ContainerNotifier=off", "Other=true"] {
            assert!(wrong.parse::<FeatureGates>().is_err(), "{wrong}");
        }
    }
}

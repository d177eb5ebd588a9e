//! A running container, as the place that it was found at tells of it.

use boathook_api::pod_notification::ErrorType;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::Failure;

/// The instance of a container that runs now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Instance {
    /// With the runtime's name before it, as in the pod's status.
    pub(crate) container_id: String,
    /// The pod's, if it has one yet.
    pub(crate) address: Option<String>,
    /// The container's named ports.
    pub(crate) ports: Vec<(String, u16)>,
}

impl Instance {
    /// As the runtime itself knows it.
    pub(crate) fn bare_id(&self) -> &str {
        self.container_id.split_once("://").map_or(&self.container_id, |(_, id)| id)
    }

    /// Where to connect to: the host that is written, or the pod's address.
    pub(crate) fn host<'a>(&'a self, written: Option<&'a str>) -> Result<&'a str, Failure> {
        let written = written.filter(|host| !host.is_empty());
        written.or(self.address.as_deref()).ok_or_else(|| {
            Failure::new(ErrorType::Unsupported, "the pod's address is unknown: write `host` in the action")
        })
    }

    /// A port by its number or name. A name that is a number is one, as for core's probes.
    pub(crate) fn port(&self, written: &IntOrString) -> Result<u16, Failure> {
        let number = match written {
            IntOrString::Int(number) => u16::try_from(*number).ok(),
            IntOrString::String(name) => {
                let named = self.ports.iter().find(|(known, _)| known == name);
                named.map(|(_, port)| *port).or_else(|| name.parse().ok())
            }
        };
        number.filter(|port| *port > 0).ok_or_else(|| match written {
            IntOrString::Int(number) => Failure::new(
                ErrorType::Unsupported,
                format!("{number} is not a valid port: write a number from 1 to 65535"),
            ),
            IntOrString::String(name) => {
                let message = format!("the container has no port named `{name}`: write its number");
                Failure::new(ErrorType::Unsupported, message)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance() -> Instance {
        Instance { ports: vec![("web".to_owned(), 8080)], address: Some("10.0.0.7".to_owned()), ..Instance::default() }
    }

    #[test]
    fn a_port_is_a_number_or_a_name_of_the_container() {
        let port = |name: &str| instance().port(&IntOrString::String(name.to_owned()));
        assert_eq!((port("web"), port("81")), (Ok(8080), Ok(81)));
        assert_eq!(instance().port(&IntOrString::Int(82)), Ok(82));
        assert!(port("admin").unwrap_err().message.contains("`admin`"));
        assert!(instance().port(&IntOrString::Int(70_000)).is_err());
    }

    #[test]
    fn the_host_is_the_pod_unless_another_is_written() {
        assert_eq!(instance().host(None).unwrap(), "10.0.0.7");
        assert_eq!(instance().host(Some("")).unwrap(), "10.0.0.7");
        assert_eq!(instance().host(Some("db.example")).unwrap(), "db.example");
        assert!(Instance::default().host(None).unwrap_err().message.contains("host"));
    }
}

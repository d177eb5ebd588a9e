//! Services. Addresses are given out by the server, which knows those in use; here is what needs no such knowledge.

use serde_json::{Value, json};

use super::fill::{each, fill, fill_in};
use crate::status::FieldError;

pub(crate) fn default(object: &mut Value) {
    if let Some(spec) = object.get_mut("spec") {
        fill(spec, "type", json!("ClusterIP"));
        fill(spec, "sessionAffinity", json!("None"));
        if spec["type"] != "ExternalName" {
            fill(spec, "internalTrafficPolicy", json!("Cluster"));
        }
        for port in each(spec, "/ports") {
            fill(port, "protocol", json!("TCP"));
            let number = port["port"].clone();
            fill(port, "targetPort", number);
        }
    }
    fill_in(object, "status", "loadBalancer", json!({}));
}

pub(crate) fn begin(object: &mut Value) {
    if let Some(spec) = object.get_mut("spec").filter(|spec| spec["type"] != "ExternalName") {
        fill(spec, "ipFamilies", json!(["IPv4"]));
        fill(spec, "ipFamilyPolicy", json!("SingleStack"));
    }
}

/// An address stays as long as the service has one.
pub(crate) fn changes(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let (before, after) = (&old["spec"]["clusterIP"], &new["spec"]["clusterIP"]);
    if new["spec"]["type"] != "ExternalName" && old["spec"]["type"] != "ExternalName" && before != after {
        errors.push(FieldError::invalid("spec.clusterIPs[0]", &json!([after]), "may not change once set"));
    }
}

pub(crate) fn validate(object: &Value, errors: &mut Vec<FieldError>) {
    let spec = object.pointer("/spec").unwrap_or(&Value::Null);
    let ports = spec.get("ports").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let headless = spec["clusterIP"] == "None";
    if ports.is_empty() && !headless && spec["type"] != "ExternalName" {
        errors.push(FieldError::required("spec.ports", ""));
    }
    for (index, port) in ports.iter().enumerate() {
        let at = format!("spec.ports[{index}]");
        if ports.len() > 1 && port.get("name").is_none() {
            errors.push(FieldError::required(format!("{at}.name"), ""));
        }
        let name = &port["name"];
        if !name.is_null() && ports[..index].iter().any(|other| other["name"] == *name) {
            errors.push(FieldError::duplicate(format!("{at}.name"), name));
        }
        let is_port = |value: &Value| value.as_i64().is_some_and(|number| (1..=65535).contains(&number));
        let out_of_range = "must be between 1 and 65535, inclusive";
        if !is_port(&port["port"]) {
            errors.push(FieldError::invalid(format!("{at}.port"), &port["port"], out_of_range));
        }
        if !matches!(port["protocol"].as_str(), None | Some("SCTP" | "TCP" | "UDP")) {
            let known = ["SCTP", "TCP", "UDP"];
            errors.push(FieldError::not_supported(format!("{at}.protocol"), &port["protocol"], &known));
        }
        if port["targetPort"].is_number() && !is_port(&port["targetPort"]) {
            errors.push(FieldError::invalid(format!("{at}.targetPort"), &port["targetPort"], out_of_range));
        }
    }
    let types = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    if spec["type"].as_str().is_some_and(|kind| !types.contains(&kind)) {
        errors.push(FieldError::not_supported("spec.type", &spec["type"], &types));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_its_own_target_unless_it_names_one() {
        let mut service = json!({"spec": {"ports": [{"port": 80}, {"port": 81, "targetPort": "web"}]}});
        default(&mut service);
        assert_eq!(service["spec"]["ports"][0]["targetPort"], 80);
        assert_eq!(service["spec"]["ports"][1]["targetPort"], "web");
    }

    #[test]
    fn several_ports_need_names() {
        let mut errors = Vec::new();
        validate(&json!({"spec": {"ports": [{"port": 80}, {"port": 0, "name": "b"}]}}), &mut errors);
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "spec.ports[0].name: Required value",
                "spec.ports[1].port: Invalid value: 0: must be between 1 and 65535, inclusive"
            ]
        );
    }
}

//! `/version`: which Kubernetes this is like.

use serde_json::{Value, json};

/// The Kubernetes that is served, marked as ours; kubectl warns by it about versions too far apart.
pub const GIT_VERSION: &str = "v1.35.0+boathook";

pub fn version() -> Value {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    json!({
        "major": "1",
        "minor": "35",
        "gitVersion": GIT_VERSION,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": format!("{}/{architecture}", std::env::consts::OS),
    })
}

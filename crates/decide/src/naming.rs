//! Names of objects that are made for others: the same whoever makes them, so nothing is made twice.

/// A name that begins as its maker's does, and ends with a digest of these texts.
pub(crate) fn derived(maker: &str, texts: &[&str]) -> String {
    // Names are ASCII, at most 253 bytes long, and no part of one ends with a dot or a dash.
    let start: String = maker.chars().take(230).collect();
    format!("{}-{:016x}", start.trim_end_matches(['.', '-']), digest(texts))
}

/// A label's value has at most 63 characters: a longer name is told by the owner reference alone.
pub(crate) fn label(key: &str, name: String) -> Option<std::collections::BTreeMap<String, String>> {
    (name.len() <= 63).then(|| [(key.to_owned(), name)].into())
}

/// FNV-1a: the same on every machine and in every version.
fn digest(texts: &[&str]) -> u64 {
    let bytes = texts.iter().flat_map(|text| text.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |digest, byte| (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

//! Names of objects that are made for others: the same whoever makes them, so nothing is made twice.

/// A name that begins as its maker's does, and ends with a digest of these texts.
pub(crate) fn derived(maker: &str, texts: &[&str]) -> String {
    format!("{}-{:016x}", start(maker), digest(texts))
}

/// Whether such a name could be one that was derived from this maker.
pub(crate) fn is_derived(name: &str, maker: &str) -> bool {
    let parts = name.rsplit_once('-');
    parts.is_some_and(|(begins, digest)| begins == start(maker) && digest.len() == 16)
}

fn start(maker: &str) -> String {
    // Names are ASCII, at most 253 bytes long, and no part of one ends with a dot or a dash.
    let start: String = maker.chars().take(230).collect();
    start.trim_end_matches(['.', '-']).to_owned()
}

/// A label's value has at most 63 characters: a longer name is told by the owner reference alone.
pub(crate) fn label(key: &str, name: String) -> Option<std::collections::BTreeMap<String, String>> {
    (name.len() <= 63).then(|| [(key.to_owned(), name)].into())
}

/// FNV-1a: the same on every machine and in every version.
pub(crate) fn digest(texts: &[&str]) -> u64 {
    let bytes = texts.iter().flat_map(|text| text.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |digest, byte| (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

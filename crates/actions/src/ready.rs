//! Waiting for one line in what a command prints, however it comes in pieces.

/// As much of a line as can matter: a longer one is not it.
const LONGEST: usize = 64;

/// Looks for a line. A carriage return at its end is not counted: a terminal's habits are nobody's mistake.
#[derive(Debug)]
pub(crate) struct Awaited {
    line: &'static str,
    /// The line under way, or its beginning.
    so_far: Vec<u8>,
}

impl Awaited {
    pub(crate) fn new(line: &'static str) -> Self {
        Self { line, so_far: Vec::new() }
    }

    /// Whether the line has come to its end in these bytes.
    pub(crate) fn is_in(&mut self, bytes: &[u8]) -> bool {
        bytes.iter().any(|byte| match byte {
            b'\n' => {
                let line = std::mem::take(&mut self.so_far);
                line.strip_suffix(b"\r").unwrap_or(&line) == self.line.as_bytes()
            }
            byte => {
                if self.so_far.len() < LONGEST {
                    self.so_far.push(*byte);
                }
                false
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pieces: &[&[u8]]) -> bool {
        let mut awaited = Awaited::new("READY");
        pieces.iter().any(|piece| awaited.is_in(piece))
    }

    #[test]
    fn a_line_is_found_in_whatever_pieces_it_comes() {
        assert!(found(&[b"READY\n"]));
        assert!(found(&[b"locking\nREA", b"DY", b"\r\n"]));
        assert!(found(&[b"READY\nmore"]));
    }

    #[test]
    fn only_the_whole_line_is_it() {
        for other in [&b"READY"[..], b"NOT READY\n", b"READY now\n", b"ready\n", b"\n", b" READY\n"] {
            assert!(!found(&[other]), "{}", String::from_utf8_lossy(other));
        }
        assert!(!found(&[&vec![b'x'; 1 << 20], b"READY\n"]));
    }
}

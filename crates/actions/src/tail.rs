//! The end of an output: however much comes, only the last of it is kept.

use std::collections::VecDeque;

/// What is kept of an output, and shown to people.
const KEPT: usize = 10 << 10;

#[derive(Debug, Default)]
pub(crate) struct Tail(VecDeque<u8>);

impl Tail {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(KEPT)..];
        let too_many = (self.0.len() + bytes.len()).saturating_sub(KEPT);
        self.0.drain(..too_many);
        self.0.extend(bytes);
    }

    /// As text: what is no UTF-8 is replaced, and a character that was cut at the beginning is left out.
    pub(crate) fn into_text(self) -> String {
        let was_cut = self.0.len() == KEPT;
        let bytes = Vec::from(self.0);
        let begin = match was_cut {
            // At most three bytes of a character can stand before the next one.
            true => bytes.iter().take(3).take_while(|byte| is_continuation(**byte)).count(),
            false => 0,
        };
        let mut text = String::from_utf8_lossy(&bytes[begin..]).into_owned();
        // A replaced byte became three.
        let excess = text.len().saturating_sub(KEPT);
        let begin = (excess..).find(|at| text.is_char_boundary(*at)).unwrap_or(excess);
        text.drain(..begin);
        text
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(parts: &[&[u8]]) -> String {
        let mut tail = Tail::default();
        parts.iter().for_each(|part| tail.push(part));
        tail.into_text()
    }

    #[test]
    fn a_short_output_is_kept_as_it_is() {
        assert_eq!(text(&[b"ab", b"", b"c\n"]), "abc\n");
        assert_eq!(text(&[]), "");
        assert_eq!(text(&["né".as_bytes()]), "né");
    }

    #[test]
    fn of_a_long_one_the_end_is_kept() {
        let mut tail = Tail::default();
        for number in 0..100_000 {
            tail.push(format!("{number}\n").as_bytes());
            assert!(tail.0.len() <= KEPT);
        }
        let kept = tail.into_text();
        assert!(kept.ends_with("99998\n99999\n") && kept.len() == KEPT, "{}", kept.len());
        assert_eq!(text(&[&vec![b'a'; 3 * KEPT], b"end"]).len(), KEPT);
    }

    #[test]
    fn a_cut_character_is_left_out_and_a_broken_one_replaced() {
        // Three bytes each: 10240 is not a multiple of three.
        let kept = text(&["€".repeat(KEPT).as_bytes()]);
        assert!(kept.chars().all(|one| one == '€') && kept.len() <= KEPT, "{kept}");
        assert_eq!(text(&[b"a\xffb"]), "a\u{fffd}b");
        assert!(text(&[&vec![0xff; KEPT]]).len() <= KEPT);
    }
}

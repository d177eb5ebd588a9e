//! What is written: records, and the lines of the index that say where they are. Both begin with numbers of fixed width,
//! so that a reader knows how much must follow.

/// The length of the line before a record's text.
pub(crate) const HEAD: usize = 44;

/// The length of a line in the index.
pub(crate) const LINE: usize = 52;

/// More than any record has: a longer one is none.
const LONGEST: u64 = 1 << 20;

/// Where a record is, and what must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// From 1 on, without gaps.
    pub(crate) number: u64,
    /// Of its head, in `entries`.
    pub(crate) offset: u64,
    /// Of its text.
    pub(crate) length: u64,
    pub(crate) checksum: u64,
}

impl Entry {
    pub(crate) fn of(number: u64, offset: u64, text: &[u8]) -> Self {
        Self { number, offset, length: text.len() as u64, checksum: checksum(number, text) }
    }

    /// Where the next one begins.
    pub(crate) fn end(&self) -> u64 {
        self.offset + HEAD as u64 + self.length
    }

    /// The line before its text.
    pub(crate) fn head(&self) -> String {
        format!("record {:010} {:08} {:016x}\n", self.number, self.length, self.checksum)
    }

    pub(crate) fn parse_head(head: &[u8], offset: u64) -> Option<Self> {
        let [number, length, checksum] = fields(std::str::from_utf8(head).ok()?.strip_prefix("record ")?)?;
        Self::checked(number, offset, length, checksum).filter(|entry| entry.head().as_bytes() == head)
    }

    /// Its line in the index.
    pub(crate) fn line(&self) -> String {
        format!("{:010} {:014} {:08} {:016x}\n", self.number, self.offset, self.length, self.checksum)
    }

    pub(crate) fn parse_line(line: &[u8]) -> Option<Self> {
        let [number, offset, length, checksum] = fields(std::str::from_utf8(line).ok()?)?;
        let offset = offset.parse().ok()?;
        Self::checked(number, offset, length, checksum).filter(|entry| entry.line().as_bytes() == line)
    }

    fn checked(number: &str, offset: u64, length: &str, checksum: &str) -> Option<Self> {
        let length = length.parse().ok().filter(|length| *length <= LONGEST)?;
        let checksum = u64::from_str_radix(checksum, 16).ok()?;
        Some(Self { number: number.parse().ok()?, offset, length, checksum })
    }
}

fn fields<const N: usize>(line: &str) -> Option<[&str; N]> {
    line.strip_suffix('\n')?.split(' ').collect::<Vec<_>>().try_into().ok()
}

/// FNV-1a over the number and the text: enough to see what does not belong together, and a few lines long.
pub(crate) fn checksum(number: u64, text: &[u8]) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let mix = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(PRIME);
    let sum = number.to_le_bytes().iter().fold(BASIS, mix);
    text.iter().fold(sum, mix)
}

/// What the ship's officer wrote in this watch: two to three pages of memory long, another each time.
pub(crate) fn text(number: u64) -> Vec<u8> {
    const WINDS: [&str; 8] = ["north", "north-east", "east", "south-east", "south", "south-west", "west", "north-west"];
    let mut seed = checksum(number, b"");
    let wanted = 8_192 + (seed >> 32) % 4_096;
    let mut text = Vec::new();
    while (text.len() as u64) < wanted {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (wind, force, course) = (WINDS[(seed >> 61) as usize], (seed >> 40) % 12, (seed >> 20) % 360);
        text.extend(format!("watch {number}: wind {wind}, force {force}, course {course:03}\n").bytes());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_and_lines_are_read_as_they_were_written() {
        let entry = Entry::of(813, 8_123_456, &text(813));
        assert_eq!((entry.head().len(), entry.line().len()), (HEAD, LINE));
        assert_eq!(Entry::parse_head(entry.head().as_bytes(), 8_123_456), Some(entry));
        assert_eq!(Entry::parse_line(entry.line().as_bytes()), Some(entry));
    }

    #[test]
    fn anything_else_is_refused() {
        let head = Entry::of(1, 0, b"ahoy").head();
        for wrong in [&head[..43], &head.replace("record", "rekord"), &head.replace("00000004", "99999999"), "\n", ""] {
            assert_eq!(Entry::parse_head(wrong.as_bytes(), 0), None, "{wrong}");
        }
        let line = Entry::of(1, 0, b"ahoy").line();
        for wrong in [&line[1..], &line.replace(' ', "\t"), &line.replacen('0', "+", 1)] {
            assert_eq!(Entry::parse_line(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn a_text_is_longer_than_a_page_and_its_record_alone_has_its_checksum() {
        assert_ne!(text(1), text(2));
        assert!((1..100).all(|number| (8_192..12_400).contains(&text(number).len())));
        assert_ne!(checksum(1, b"ahoy"), checksum(2, b"ahoy"));
        assert_ne!(checksum(1, b"ahoy"), checksum(1, b"ahoi"));
    }
}

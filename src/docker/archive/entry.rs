//! Headers of a tar stream, from and to bytes. Names are bytes; nothing in a header is believed here or refused beyond
//! what can't be read. The `tar` crate's own reader loses names with a line feed, and the size beside them.

use std::io::{self, Read};

use tar::{EntryType, Header};

const BLOCK: usize = 512;

/// The longest name that is read: Linux takes no longer path.
const NAME_BYTES: u64 = 4096;

/// The longest extended header that is read: a few names and attributes.
const EXTENDED_BYTES: u64 = 1 << 20;

/// What an archive says of one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: Vec<u8>,
    pub(crate) kind: Kind,
    /// How many bytes of content follow.
    pub(crate) size: u64,
    pub(crate) mode: u32,
    pub(crate) mtime: u64,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// The text of a symbolic link, or the name of the entry that a hard link is to.
    pub(crate) link: Vec<u8>,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Directory,
    Symlink,
    HardLink,
    /// A device or a pipe, or something that no file system has.
    Special,
}

/// Reads entries one after the other, and the content of each.
#[derive(Debug)]
pub(crate) struct Reader<R> {
    inner: R,
    /// Content of the entry that has not been read.
    left: u64,
    /// What fills the content up to whole blocks.
    padding: u64,
}

/// What extended headers say of the next entry.
#[derive(Debug, Default)]
struct Extended {
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
    mtime: Option<u64>,
    uid: Option<u32>,
    gid: Option<u32>,
}

impl<R: Read> Reader<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self {
            inner,
            left: 0,
            padding: 0,
        }
    }

    /// The next entry; None at the end that the archive itself marks. A stream that ends before it is an error.
    pub(crate) fn next(&mut self) -> io::Result<Option<Entry>> {
        let mut extended = Extended::default();
        loop {
            self.skip_content()?;
            let mut block = [0; BLOCK];
            self.inner.read_exact(&mut block)?;
            if block.iter().all(|&byte| byte == 0) {
                return Ok(None);
            }
            let mut header = Header::new_old();
            header.as_mut_bytes().copy_from_slice(&block);
            check_sum(&header)?;
            let size = header.entry_size()?;
            self.set_content(size);
            match header.entry_type() {
                EntryType::GNULongName => extended.name = Some(self.long_text(size)?),
                EntryType::GNULongLink => extended.link = Some(self.long_text(size)?),
                EntryType::XHeader => extended.read(&self.text(size, EXTENDED_BYTES)?)?,
                // Nothing that it may say of all entries is of use here.
                EntryType::XGlobalHeader => {}
                kind => return Ok(Some(self.entry(&header, kind, extended))),
            }
        }
    }

    fn entry(&mut self, header: &Header, kind: EntryType, extended: Extended) -> Entry {
        let kind = match kind {
            EntryType::Regular | EntryType::Continuous => Kind::File,
            EntryType::Directory => Kind::Directory,
            EntryType::Symlink => Kind::Symlink,
            EntryType::Link => Kind::HardLink,
            _ => Kind::Special,
        };
        let name = extended.name.unwrap_or_else(|| header.path_bytes().into_owned());
        // Archives from before there were types mark a directory by the slash alone.
        let kind = if kind == Kind::File && name.ends_with(b"/") {
            Kind::Directory
        } else {
            kind
        };
        let size = match kind {
            Kind::File | Kind::Special => extended.size.unwrap_or(self.left),
            _ => 0,
        };
        self.set_content(size);
        let link = extended
            .link
            .or_else(|| header.link_name_bytes().map(std::borrow::Cow::into_owned));
        let number = |value: io::Result<u64>| u32::try_from(value.unwrap_or_default()).unwrap_or(u32::MAX);
        Entry {
            name,
            kind,
            size,
            // Engine 20 puts bits of the file's type there, too.
            mode: header.mode().unwrap_or_default() & 0o7777,
            mtime: extended.mtime.or_else(|| header.mtime().ok()).unwrap_or_default(),
            uid: extended.uid.unwrap_or_else(|| number(header.uid())),
            gid: extended.gid.unwrap_or_else(|| number(header.gid())),
            link: link.unwrap_or_default(),
        }
    }

    /// Reads content of the entry; 0 at its end.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        if most == 0 {
            return Ok(0);
        }
        let read = self.inner.read(&mut buffer[..most])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= read as u64;
        Ok(read)
    }

    /// Reads what follows the end of the archive, so that its sender is not cut off.
    pub(crate) fn drain(&mut self) -> io::Result<()> {
        let mut buffer = [0; 4096];
        while self.inner.read(&mut buffer)? > 0 {}
        Ok(())
    }

    fn set_content(&mut self, size: u64) {
        self.left = size;
        self.padding = (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64;
    }

    fn skip_content(&mut self) -> io::Result<()> {
        let skip = self
            .left
            .checked_add(self.padding)
            .ok_or_else(|| broken("an entry has more bytes than any file"))?;
        let skipped = io::copy(&mut self.inner.by_ref().take(skip), &mut io::sink())?;
        if skipped < skip {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.set_content(0);
        Ok(())
    }

    fn long_text(&mut self, size: u64) -> io::Result<Vec<u8>> {
        let mut text = self.text(size, NAME_BYTES + 1)?;
        if let Some(end) = text.iter().position(|&byte| byte == 0) {
            text.truncate(end);
        }
        Ok(text)
    }

    fn text(&mut self, size: u64, most: u64) -> io::Result<Vec<u8>> {
        if size > most {
            return Err(broken("an extended header is too long"));
        }
        let mut text = vec![0; usize::try_from(size).unwrap_or_default()];
        self.inner.read_exact(&mut text)?;
        self.left = 0;
        Ok(text)
    }
}

impl Extended {
    /// Records of `length key=value\n`, where the value may hold anything.
    fn read(&mut self, mut records: &[u8]) -> io::Result<()> {
        let bad = || broken("an extended header can't be read");
        while !records.is_empty() {
            let space = records.iter().position(|&byte| byte == b' ').ok_or_else(bad)?;
            let length: usize = number(&records[..space])
                .and_then(|value| value.try_into().ok())
                .ok_or_else(bad)?;
            if length > records.len() || length < space + 3 || records[length - 1] != b'\n' {
                return Err(bad());
            }
            let record = &records[space + 1..length - 1];
            let equals = record.iter().position(|&byte| byte == b'=').ok_or_else(bad)?;
            let (key, value) = (&record[..equals], &record[equals + 1..]);
            match key {
                b"path" => self.name = Some(value.to_vec()),
                b"linkpath" => self.link = Some(value.to_vec()),
                b"size" => self.size = Some(number(value).ok_or_else(bad)?),
                // A fraction, and what lies before 1970, is left out.
                b"mtime" => {
                    let whole = value.split(|&byte| byte == b'.').next();
                    self.mtime = Some(whole.and_then(number).unwrap_or_default());
                }
                b"uid" => self.uid = number(value).and_then(|value| value.try_into().ok()),
                b"gid" => self.gid = number(value).and_then(|value| value.try_into().ok()),
                // A sparse file in a format of its own, which would come out as garbage.
                key if key.starts_with(b"GNU.sparse.") => {
                    return Err(broken("a sparse file is in a format that is not read"));
                }
                _ => {}
            }
            records = &records[length..];
        }
        Ok(())
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn check_sum(header: &Header) -> io::Result<()> {
    let sum: u32 = header
        .as_bytes()
        .iter()
        .enumerate()
        .map(|(index, &byte)| {
            if (148..156).contains(&index) {
                32
            } else {
                u32::from(byte)
            }
        })
        .sum();
    if header.cksum()? == sum {
        Ok(())
    } else {
        Err(broken("a header has a wrong checksum"))
    }
}

fn broken(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// The bytes that stand before the content of an entry.
pub(crate) fn header_bytes(entry: &Entry) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(BLOCK);
    let mut header = Header::new_gnu();
    header.set_entry_type(match entry.kind {
        Kind::File | Kind::Special => EntryType::Regular,
        Kind::Directory => EntryType::Directory,
        Kind::Symlink => EntryType::Symlink,
        Kind::HardLink => EntryType::Link,
    });
    header.set_mode(entry.mode & 0o7777);
    header.set_uid(u64::from(entry.uid));
    header.set_gid(u64::from(entry.gid));
    header.set_mtime(entry.mtime);
    // From 8 GiB on this is a number in base 256.
    header.set_size(entry.size);
    let old = header.as_old_mut();
    place_text(&mut bytes, &mut old.name, &entry.name, EntryType::GNULongName);
    place_text(&mut bytes, &mut old.linkname, &entry.link, EntryType::GNULongLink);
    header.set_cksum();
    bytes.extend_from_slice(header.as_bytes());
    bytes
}

/// Puts a text into its field; where it is too long, into an entry of its own before this one, too.
fn place_text(bytes: &mut Vec<u8>, field: &mut [u8; 100], text: &[u8], kind: EntryType) {
    let fits = text.len().min(field.len());
    field[..fits].copy_from_slice(&text[..fits]);
    if fits == text.len() {
        return;
    }
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.as_old_mut().name[..13].copy_from_slice(b"././@LongLink");
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(text.len() as u64 + 1);
    header.set_cksum();
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(text);
    bytes.push(0);
    bytes.resize(bytes.len() + padding(text.len() as u64 + 1), 0);
}

/// How many zeros fill content of this size up to whole blocks.
pub(crate) fn padding(size: u64) -> usize {
    (BLOCK - usize::try_from(size % BLOCK as u64).unwrap_or_default()) % BLOCK
}

/// What stands at the end of an archive.
pub(crate) const TRAILER: [u8; 2 * BLOCK] = [0; 2 * BLOCK];

#[cfg(test)]
#[path = "entry_tests.rs"]
mod tests;

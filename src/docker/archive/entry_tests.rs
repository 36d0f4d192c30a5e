use super::*;

fn entry(name: &[u8], kind: Kind, size: u64) -> Entry {
    Entry {
        name: name.to_vec(),
        kind,
        size,
        mode: 0o4755,
        mtime: 1_000_000_000,
        uid: 1000,
        gid: 1001,
        link: Vec::new(),
    }
}

/// Content of any size, of which nothing is kept.
struct Zeros(u64);

impl Read for Zeros {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = usize::try_from(self.0).unwrap_or(usize::MAX).min(buffer.len());
        // Only sizes are looked at, and clearing gigabytes takes time.
        self.0 -= read as u64;
        Ok(read)
    }
}

#[test]
fn every_name_and_link_comes_back_as_it_was() {
    let long = [b"d/".repeat(120), b"x\xff\n\xc3\xa9".to_vec()].concat();
    for (name, link) in [
        (&b"a"[..], &b""[..]),
        (b"with space 'quote' $HOME \"x\"", b"../../up"),
        (b"line\nfeed", b"/abs//double/./dot/"),
        (b"\xff\xfe not utf-8", b"\xff"),
        (&long, &long),
        (&[b'n'; 100], &[b'l'; 100]),
        (&[b'n'; 101], &[b'l'; 101]),
        (&[b'n'; 255], b"x"),
    ] {
        let written = Entry {
            link: link.to_vec(),
            ..entry(name, Kind::Symlink, 0)
        };
        let bytes = [header_bytes(&written), TRAILER.to_vec()].concat();
        let mut reader = Reader::new(bytes.as_slice());
        assert_eq!(reader.next().unwrap().unwrap(), written);
        assert_eq!(reader.next().unwrap(), None);
    }
}

#[test]
fn b15_files_of_8_gib_and_more_keep_their_size_and_the_next_entry_its_place() {
    for size in [8_589_934_591, 8_589_934_592, 9 << 30, (9 << 30) + 1] {
        let head = header_bytes(&entry(b"big", Kind::File, size));
        let next = header_bytes(&entry(b"next", Kind::File, 3));
        let stream = head
            .as_slice()
            .chain(Zeros(size))
            .chain(Zeros(padding(size) as u64))
            .chain(next.as_slice())
            .chain(&b"abc"[..])
            .chain(&TRAILER[..509])
            .chain(&TRAILER[..]);
        let mut reader = Reader::new(stream);
        assert_eq!(reader.next().unwrap().unwrap().size, size);
        assert_eq!(reader.next().unwrap().unwrap().name, b"next");
        let mut content = [0; 8];
        assert_eq!(reader.read(&mut content).unwrap(), 3);
        assert_eq!(reader.next().unwrap(), None);
    }
}

fn extended(records: &[u8], size: u64) -> Vec<u8> {
    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::XHeader);
    header.set_size(records.len() as u64);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend_from_slice(records);
    bytes.resize(bytes.len() + padding(records.len() as u64), 0);
    bytes.extend(header_bytes(&entry(b"short", Kind::File, size)));
    bytes
}

#[test]
fn extended_headers_may_hold_any_value() {
    let records = b"15 path=a\nb=c\xff\n25 mtime=1000000000.1234\n10 size=3\n13 uid=70000\n";
    let mut bytes = extended(records, 0);
    bytes.extend_from_slice(b"abc");
    bytes.resize(bytes.len() + 509 + 1024, 0);
    let mut reader = Reader::new(bytes.as_slice());
    let read = reader.next().unwrap().unwrap();
    assert_eq!(
        (read.name.as_slice(), read.size, read.uid, read.mtime),
        (&b"a\nb=c\xff"[..], 3, 70000, 1_000_000_000)
    );
    assert_eq!(reader.next().unwrap(), None);
}

#[test]
fn what_cannot_be_read_is_an_error_and_no_panic() {
    for records in [
        &b"x"[..],
        b"99 path=a\n",
        b"3 a",
        b"0 \n",
        b"5 a=b",
        b"10 path=abc",
        b"12 size=abc\n",
        b"24 GNU.sparse.major=123\n",
    ] {
        assert!(
            Reader::new(extended(records, 0).as_slice()).next().is_err(),
            "{records:?}"
        );
    }
    let mut bad_sum = header_bytes(&entry(b"a", Kind::File, 0));
    bad_sum[0] = b'b';
    assert!(Reader::new(bad_sum.as_slice()).next().is_err());
    let cut = header_bytes(&entry(b"a", Kind::File, 10));
    let mut reader = Reader::new(cut.as_slice());
    reader.next().unwrap();
    assert!(reader.next().is_err());
    assert!(
        Reader::new(&b""[..]).next().is_err(),
        "an archive without its end is cut"
    );
    let mut huge = Header::new_gnu();
    huge.set_size(u64::MAX);
    huge.set_cksum();
    let mut reader = Reader::new(huge.as_bytes().as_slice());
    assert!(reader.next().and_then(|_| reader.next()).is_err());
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..4096)) {
        let mut reader = Reader::new(bytes.as_slice());
        while let Ok(Some(_)) = reader.next() {}
    }
}

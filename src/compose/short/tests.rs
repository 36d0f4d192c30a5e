//! Tables for the short forms.

use proptest::prelude::*;

use super::*;

fn ports(text: &str) -> String {
    let ports = parse_port(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let shown: Vec<_> = ports
        .iter()
        .map(|port| {
            format!(
                "{}|{}|{}|{}",
                port.host_ip, port.published, port.target, port.protocol
            )
        })
        .collect();
    shown.join(" ")
}

#[test]
fn ports_of_every_form() {
    for (text, expected) in [
        ("80", "||80|tcp"),
        ("8080:80", "|8080|80|tcp"),
        ("9000-9001:9000-9001", "|9000|9000|tcp |9001|9001|tcp"),
        ("9100-9105:91", "|9100-9105|91|tcp"),
        ("127.0.0.1:5000:5000", "127.0.0.1|5000|5000|tcp"),
        ("127.0.0.1::5001", "127.0.0.1||5001|tcp"),
        ("[::1]:6000:6000/udp", "::1|6000|6000|udp"),
        ("53:53/UDP", "|53|53|udp"),
        ("3000-3001", "||3000|tcp ||3001|tcp"),
        ("99-100:99-100", "|100|100|tcp |99|99|tcp"),
        ("80/", "||80|tcp"),
    ] {
        assert_eq!(ports(text), expected, "{text}");
    }
    for text in [
        "",
        "0x50",
        "9000-9001:90-92",
        "x:80",
        "80/foo",
        "70000",
        "1:2:3",
        "::1:80:80",
        "90-80",
        "-1",
        "80:",
        "/tcp",
    ] {
        assert!(parse_port(text).is_err(), "{text}");
    }
}

#[test]
fn mounts_of_every_form() {
    let read = |text: &str| parse_mount(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(
        read("/anon"),
        Mount {
            target: "/anon".into(),
            ..Mount::default()
        }
    );
    assert_eq!(read("data:/d").source, "data");
    assert!(!read("data:/d").is_bind && !read("a/b:/d").is_bind);
    for text in [
        "./rel:/r",
        "/abs:/r",
        "~/h:/h",
        "../up:/u",
        r"C:\x:/d",
        r"\\pipe:/p",
    ] {
        assert!(read(text).is_bind, "{text}");
    }
    assert_eq!(read("v:/d1").target, "v:/d1");
    assert!(read("v:/d1").drive);
    let options = read("/abs:/s:rshared,ro,bogus,z");
    assert_eq!(
        (options.propagation.as_deref(), options.read_only),
        (Some("rshared"), true)
    );
    assert_eq!(
        (options.selinux.as_deref(), options.ignored.as_slice()),
        (Some("z"), &["bogus".to_owned()][..])
    );
    assert!(read("data:/n:nocopy").nocopy);
    assert_eq!(read("${X:-a:b}:/d").source, "${X:-a:b}");
    for text in ["", "aa::/b", ":/b:c", "/a:/b:ro:x", "ab:"] {
        assert!(parse_mount(text).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn never_panic(text in "[a-c0-9:/.\\-\\[\\]~,$\\{\\}\u{e9}]{0,24}") {
        let _ = parse_port(&text);
        let _ = parse_mount(&text);
        let _ = parse_device(&text);
    }
}

//! What addresses mean and which are refused.

use super::*;

fn files(directory: &str) -> TlsFiles {
    TlsFiles {
        directory: directory.into(),
        presence: Presence::All,
    }
}

fn plain() -> TlsSettings {
    TlsSettings {
        tcp: None,
        https: files("/certs"),
    }
}

#[test]
fn addresses_are_read_and_shown() {
    for (text, shown, local, remote) in [
        (
            "unix:///var/run/docker.sock",
            "unix:///var/run/docker.sock",
            true,
            None,
        ),
        (
            "unix:///with space/a.sock",
            "unix:///with space/a.sock",
            true,
            None,
        ),
        (
            "tcp://engine.example:2375",
            "tcp://engine.example:2375",
            false,
            Some("engine.example"),
        ),
        (
            "tcp://engine.example",
            "tcp://engine.example:2375",
            false,
            Some("engine.example"),
        ),
        (
            "tcp://engine.example/",
            "tcp://engine.example:2375",
            false,
            Some("engine.example"),
        ),
        ("tcp://:4000", "tcp://127.0.0.1:4000", true, None),
        ("tcp://127.0.0.1:4000", "tcp://127.0.0.1:4000", true, None),
        ("tcp://localhost", "tcp://localhost:2375", true, None),
        ("tcp://[::1]:4000", "tcp://[::1]:4000", true, None),
        (
            "tcp://[fd00::7]",
            "tcp://[fd00::7]:2375",
            false,
            Some("[fd00::7]"),
        ),
        ("http://engine:81", "tcp://engine:81", false, Some("engine")),
        ("http://engine", "tcp://engine:80", false, Some("engine")),
        ("https://engine", "https://engine:443", false, Some("engine")),
        ("ssh://me@engine", "ssh://me@engine", false, Some("engine")),
        ("ssh://engine:2222/", "ssh://engine:2222", false, Some("engine")),
        (
            "ssh://me@engine:22/run/user/1000/docker.sock",
            "ssh://me@engine:22/run/user/1000/docker.sock",
            false,
            Some("engine"),
        ),
    ] {
        let address = Address::parse(text, &plain()).unwrap_or_else(|problem| panic!("{text}: {problem}"));
        assert_eq!(address.to_string(), shown, "{text}");
        assert_eq!(address.is_local(), local, "{text}");
        assert_eq!(address.remote_host(), remote, "{text}");
    }
}

#[test]
fn tcp_is_encrypted_where_the_settings_say_so_and_https_always() {
    let settings = TlsSettings {
        tcp: Some(files("/a")),
        https: files("/b"),
    };
    let tls = |text: &str, settings: &TlsSettings| match Address::parse(text, settings) {
        Ok(Address::Tcp { port, tls, .. }) => (port, tls),
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(tls("tcp://e", &settings), (2376, Some(files("/a"))));
    assert_eq!(tls("tcp://e:2375", &settings), (2375, Some(files("/a"))));
    assert_eq!(tls("https://e", &settings), (443, Some(files("/b"))));
    assert_eq!(tls("http://e", &settings), (80, None));
    assert_eq!(tls("tcp://e", &plain()), (2375, None));
}

#[test]
fn bad_addresses_are_refused_with_what_is_wrong() {
    let long = format!("unix:///{}", "x".repeat(107));
    for (text, problem) in [
        ("", "no scheme"),
        ("/var/run/docker.sock", "no scheme"),
        ("engine:2375", "no scheme"),
        ("unix://docker.sock", "not absolute"),
        ("unix://", "not absolute"),
        (long.as_str(), "107"),
        ("fd://3", "scheme `fd`"),
        ("UNIX:///a", "scheme `UNIX`"),
        ("npipe:////./pipe/docker_engine", "Windows"),
        ("tcp://e:", "`` is not a port"),
        ("tcp://e:0", "`0` is not a port"),
        ("tcp://e:+5", "`+5` is not a port"),
        ("tcp://e:70000", "`70000` is not a port"),
        ("tcp://e:1/v1", "path"),
        ("tcp://a b:1", "`a b` is not a host"),
        ("tcp://::1:2375", "more than one `:`"),
        ("tcp://[::1", "not closed"),
        ("tcp://[zork]:1", "not an IPv6"),
        ("tcp://[::1]x", "follows"),
        ("tcp://me:secret@e:1", "client certificate"),
        ("ssh://me:secret@e", "passwords"),
        ("ssh://-oProxyCommand=x@e", "user name"),
        ("ssh://-oProxyCommand", "not a host"),
        ("ssh://@e", "user name"),
        ("ssh://", "no machine"),
        ("ssh://e/a:b", "can't hold"),
    ] {
        let error = Address::parse(text, &plain()).expect_err(text);
        assert!(error.contains(problem), "{text}: {error}");
        assert!(!error.contains("secret"), "{text}: {error}");
    }
}

#[test]
fn passwords_are_not_shown() {
    for (text, shown) in [
        ("tcp://me:secret@e:1", "tcp://me:***@e:1"),
        ("tcp://me:se@cret@e:1", "tcp://me:***@e:1"),
        ("tcp://me:se/cret@e:1", "tcp://me:***@e:1"),
        ("me:secret@e", "me:***@e"),
        ("ssh://me@e:22", "ssh://me@e:22"),
        ("unix:///run/docker.sock", "unix:///run/docker.sock"),
    ] {
        assert_eq!(redacted(text), shown);
    }
}

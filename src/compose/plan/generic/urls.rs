//! Variables whose value is the URL of a service: its name becomes its address, everything else stays (contract 4.5). For
//! programs that look names up by themselves, and not in the hosts file.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::{Refusals, Subject};

/// A URL whose host is a service.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ServiceUrl {
    /// Scheme, `://` and user.
    before: String,
    /// The service, by its place in the plan.
    pub(crate) service: usize,
    /// Port, path, query and fragment.
    after: String,
}

impl std::fmt::Debug for ServiceUrl {
    /// Shows the service only: a URL may hold a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServiceUrl")
            .field("service", &self.service)
            .finish_non_exhaustive()
    }
}

impl ServiceUrl {
    pub(crate) fn with_address(&self, address: IpAddr) -> String {
        match address {
            IpAddr::V4(address) => format!("{}{address}{}", self.before, self.after),
            IpAddr::V6(address) => format!("{}[{address}]{}", self.before, self.after),
        }
    }

    fn parse(text: &str, services: &[String]) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
        if !is_scheme {
            return None;
        }
        let authority = rest.find(['/', '?', '#']).map_or(rest, |end| &rest[..end]);
        let user = authority.rfind('@').map_or(0, |at| at + 1);
        let place = &authority[user..];
        let (host, port) = place
            .split_once(':')
            .map_or((place, None), |(host, port)| (host, Some(port)));
        let is_port = port.is_none_or(|port| {
            port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0)
        });
        let service = services.iter().position(|service| service == host)?;
        let begin = scheme.len() + 3 + user;
        is_port.then(|| Self {
            before: text[..begin].to_owned(),
            service,
            after: text[begin + host.len()..].to_owned(),
        })
    }
}

/// The variables that `x-sandbox.resolve_environment` names.
pub(super) fn resolved(
    subject: &Subject<'_>,
    names: &[String],
    refusals: &mut Refusals,
) -> BTreeMap<String, ServiceUrl> {
    let mut urls = BTreeMap::new();
    for name in names {
        let value = subject.service.environment.get(name).and_then(Option::as_deref);
        match value.and_then(|value| ServiceUrl::parse(value, subject.order)) {
            Some(url) => {
                urls.insert(name.clone(), url);
            }
            None => refusals.invalid(
                subject.path("x-sandbox").key("resolve_environment"),
                format!("the value of `{name}` is no URL whose host is a service, with a valid port"),
            ),
        }
    }
    urls
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<ServiceUrl> {
        ServiceUrl::parse(text, &["web".to_owned(), "db".to_owned()])
    }

    #[test]
    fn m6_the_host_of_a_url_becomes_an_address_and_the_rest_stays() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        for (text, v4, v6) in [
            ("http://db", "http://10.0.0.2", "http://[fd00::2]"),
            (
                "postgres://me:p%40ss@db:5432/base?a=b#c",
                "postgres://me:p%40ss@10.0.0.2:5432/base?a=b#c",
                "postgres://me:p%40ss@[fd00::2]:5432/base?a=b#c",
            ),
            (
                "http://db:80?q=//db",
                "http://10.0.0.2:80?q=//db",
                "http://[fd00::2]:80?q=//db",
            ),
        ] {
            let url = parse(text).unwrap();
            assert_eq!(url.service, 1);
            assert_eq!(url.with_address(address("10.0.0.2")), v4);
            assert_eq!(url.with_address(address("fd00::2")), v6);
        }
    }

    #[test]
    fn m4_what_is_no_url_of_a_service_is_none() {
        for text in [
            "",
            "db",
            "db:5432",
            "://db",
            "1http://db",
            "http://other",
            "http://db:0",
            "http://db:65536",
            "http://db:",
            "http://db:+5",
            "http://[fd00::2]:80",
            "http:///db",
        ] {
            assert!(parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_password_of_a_url_is_not_shown() {
        let shown = format!("{:?}", parse("http://me:hunter2@db"));
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

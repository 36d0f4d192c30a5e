//! Engines behind mutual TLS: checks of the certificate files, and the client.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::errors::Error as BollardError;
use bollard::{ClientVersion, Docker};
use rustls::crypto::{CryptoProvider, ring};

use super::address::{Presence, TlsFiles};
use super::tried::Failure;

/// Certificates and keys are a few kilobytes; nothing larger is read.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// An address with the files that were found good for it.
pub(super) struct Endpoint {
    authority: String,
    ca: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
}

impl Endpoint {
    /// Checks the files, which the client would read only while it connects, and whose absence it does not report: it
    /// would go on without a certificate and get an alert from the engine.
    pub(super) async fn open(
        authority: String,
        files: &TlsFiles,
        deadline: Duration,
    ) -> Result<Self, Failure> {
        let files = files.clone();
        let checking = tokio::task::spawn_blocking(move || check(&files));
        let (ca, certificate, key) = match tokio::time::timeout(deadline, checking).await {
            Ok(Ok(checked)) => checked?,
            Ok(Err(error)) => {
                return Err(Failure::unavailable(format!(
                    "reading the certificates failed: {error}"
                )));
            }
            Err(_) => {
                return Err(Failure::unavailable(format!(
                    "the certificates could not be read in {deadline:?}"
                )));
            }
        };
        Ok(Self {
            authority,
            ca,
            certificate,
            key,
        })
    }

    pub(super) fn client(&self, timeout_seconds: u64, version: &ClientVersion) -> Result<Docker, Failure> {
        choose_provider();
        Docker::connect_with_ssl(
            &self.authority,
            &self.key,
            &self.certificate,
            &self.ca,
            timeout_seconds,
            version,
        )
        .map_err(|error| refused(&error))
    }
}

/// Says which file is meant where the client's text does not.
fn refused(error: &BollardError) -> Failure {
    match error {
        BollardError::LoadNativeCertsErrors { errors } => {
            let errors: Vec<String> = errors.iter().take(3).map(ToString::to_string).collect();
            Failure::invalid(format!(
                "the system's certificates can't be read: {}",
                errors.join("; ")
            ))
            .with_hint("install the package `ca-certificates`, or correct SSL_CERT_FILE and SSL_CERT_DIR")
        }
        BollardError::CertParseError { path } | BollardError::CertPathError { path } => Failure::invalid(
            format!("the certificates in `{}` can't be understood", path.display()),
        ),
        other => Failure::unavailable(other.to_string()),
    }
}

/// Installs the cryptography for the process, unless the application has chosen one.
///
/// bollard takes the process-wide one, and rustls panics when none is installed and the features of the whole program
/// enable several. Losing a race to another thread is fine: then there is one.
fn choose_provider() {
    if CryptoProvider::get_default().is_none() {
        let _lost_race = ring::default_provider().install_default();
    }
}

fn check(files: &TlsFiles) -> Result<(PathBuf, PathBuf, PathBuf), Failure> {
    let found = |name: &str, marker: &str| -> Result<Option<PathBuf>, Failure> {
        let path = files.directory.join(name);
        match read(&path) {
            Ok(text) if text.contains("ENCRYPTED PRIVATE KEY") || text.contains("Proc-Type: 4,ENCRYPTED") => {
                Err(Failure::invalid(format!(
                    "the key `{}` has a passphrase, which is not supported",
                    path.display()
                )))
            }
            Ok(text) if text.contains(marker) => Ok(Some(path)),
            Ok(_) => Err(Failure::invalid(format!(
                "`{}` holds no PEM text with `{marker}`",
                path.display()
            ))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && files.presence == Presence::Any => {
                Ok(None)
            }
            Err(error) => Err(Failure::invalid(format!(
                "the TLS file `{}` can't be read: {error}",
                path.display()
            ))
            .with_hint("DOCKER_CERT_PATH names a folder with ca.pem, cert.pem and key.pem")),
        }
    };
    let ca = found("ca.pem", "-----BEGIN CERTIFICATE-----")?;
    let certificate = found("cert.pem", "-----BEGIN CERTIFICATE-----")?;
    let key = found("key.pem", "PRIVATE KEY-----")?;
    if certificate.is_some() != key.is_some() {
        let (there, missing) = if key.is_some() {
            ("key.pem", "cert.pem")
        } else {
            ("cert.pem", "key.pem")
        };
        return Err(Failure::invalid(format!(
            "`{}` has {there} but no {missing}; a client certificate needs both",
            files.directory.display()
        )));
    }
    // Without a file of its own the engine's certificate is checked against those of the system, which the client
    // trusts anyway; it insists on a file, and an empty one adds nothing.
    let nothing = || PathBuf::from("/dev/null");
    Ok((
        ca.unwrap_or_else(nothing),
        certificate.unwrap_or_else(nothing),
        key.unwrap_or_else(nothing),
    ))
}

fn read(path: &Path) -> std::io::Result<String> {
    use std::io::Read;
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)?
        .take(MAX_FILE_BYTES)
        .read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";
    const KEY: &str = "-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n";

    fn problem(names: &[(&str, &str)], presence: Presence) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in names {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        check(&TlsFiles {
            directory: folder.path().to_owned(),
            presence,
        })
        .err()
        .map(|failure| failure.reason)
    }

    #[test]
    fn the_file_that_is_missing_or_wrong_is_named() {
        let all = [
            ("ca.pem", CERTIFICATE),
            ("cert.pem", CERTIFICATE),
            ("key.pem", KEY),
        ];
        assert_eq!(problem(&all, Presence::All), None);
        assert_eq!(problem(&[], Presence::Any), None);
        assert_eq!(problem(&all[..1], Presence::Any), None);
        for (names, presence, text) in [
            (&all[1..], Presence::All, "ca.pem` can't be read"),
            (&all[..1], Presence::All, "cert.pem` can't be read"),
            (&all[..2], Presence::All, "key.pem` can't be read"),
            (&all[..2], Presence::Any, "has cert.pem but no key.pem"),
            (&[("ca.pem", KEY)], Presence::Any, "ca.pem` holds no PEM text"),
            (
                &[
                    ("ca.pem", CERTIFICATE),
                    ("cert.pem", CERTIFICATE),
                    ("key.pem", CERTIFICATE),
                ],
                Presence::All,
                "key.pem` holds no PEM text",
            ),
        ] {
            let problem = problem(names, presence).unwrap_or_default();
            assert!(problem.contains(text), "{text}: {problem}");
        }
    }

    #[test]
    fn an_encrypted_key_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("ca.pem", CERTIFICATE),
            ("cert.pem", CERTIFICATE),
            (
                "key.pem",
                "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n-----END ENCRYPTED PRIVATE KEY-----\n",
            ),
        ] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let failure = check(&TlsFiles {
            directory: folder.path().to_owned(),
            presence: Presence::All,
        })
        .unwrap_err();
        assert!(failure.reason.contains("passphrase"), "{}", failure.reason);
    }

    #[test]
    fn the_provider_is_chosen_once_and_choosing_again_is_harmless() {
        choose_provider();
        choose_provider();
        assert!(CryptoProvider::get_default().is_some());
    }
}

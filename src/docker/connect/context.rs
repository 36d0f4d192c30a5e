//! Contexts of the docker command: its configuration folder names the current one and holds what each means.
//! Reads files, opens no connection.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// A file of these is a few hundred bytes; nothing larger is read.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// How many contexts are looked at.
const MAX_CONTEXTS: usize = 1000;

/// What a context says about its engine.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Context {
    /// Empty for the default socket.
    pub(super) host: String,
    pub(super) skip_tls_verify: bool,
    /// The folder with the context's certificates, where it has some.
    pub(super) tls: Option<PathBuf>,
}

#[derive(Deserialize)]
struct ConfigFile {
    #[serde(rename = "currentContext", default)]
    current_context: String,
}

#[derive(Deserialize)]
struct MetaFile {
    #[serde(rename = "Name", default)]
    name: String,
    #[serde(rename = "Endpoints", default)]
    endpoints: Endpoints,
}

#[derive(Deserialize, Default)]
struct Endpoints {
    docker: Option<Endpoint>,
}

#[derive(Deserialize)]
struct Endpoint {
    #[serde(rename = "Host", default)]
    host: String,
    #[serde(rename = "SkipTLSVerify", default)]
    skip_tls_verify: bool,
}

/// The current context by the configuration file. None where there is no file or it names none.
pub(super) fn current(config: &Path) -> Result<Option<String>, String> {
    let path = config.join("config.json");
    let text = match read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let file: ConfigFile = serde_json::from_str(&text).map_err(|error| not_understood(&error))?;
    Ok(Some(file.current_context).filter(|name| !name.is_empty()))
}

/// Looks a context up by its name. The error says why there is none.
///
/// The folders are named by the SHA-256 of the context's name. The name is also in the file, so the folders are
/// searched for it: no hash function is needed for what is a handful of files.
pub(super) fn load(config: &Path, name: &str) -> Result<Context, String> {
    let contexts = config.join("contexts");
    let meta = contexts.join("meta");
    let entries = match fs::read_dir(&meta) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(format!(
                "there is no context of this name: `{}` does not exist",
                meta.display()
            ));
        }
        Err(error) => return Err(format!("`{}` can't be read: {error}", meta.display())),
    };
    let mut unreadable = Vec::new();
    for entry in entries.take(MAX_CONTEXTS).flatten() {
        let path = entry.path().join("meta.json");
        let file = match read(&path) {
            Ok(text) => serde_json::from_str::<MetaFile>(&text).map_err(|error| not_understood(&error)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => Err(error.to_string()),
        };
        match file {
            Ok(file) if file.name == name => {
                let endpoint = file
                    .endpoints
                    .docker
                    .ok_or_else(|| format!("the context has no docker endpoint in `{}`", path.display()))?;
                let tls = contexts.join("tls").join(entry.file_name()).join("docker");
                return Ok(Context {
                    host: endpoint.host,
                    skip_tls_verify: endpoint.skip_tls_verify,
                    tls: tls.is_dir().then_some(tls),
                });
            }
            Ok(_) => {}
            Err(problem) => unreadable.push(format!("`{}`: {problem}", path.display())),
        }
    }
    let mut text = format!("there is no context of this name in `{}`", meta.display());
    if !unreadable.is_empty() {
        text = format!("{text}; could not be read: {}", unreadable.join(", "));
    }
    Err(text)
}

/// The place and kind of a JSON error. Not its text: that may quote the file, which also holds credentials.
fn not_understood(error: &serde_json::Error) -> String {
    format!(
        "it can't be understood (line {}, column {})",
        error.line(),
        error.column()
    )
}

fn read(path: &Path) -> io::Result<String> {
    use std::io::Read;
    // A pipe or device in the file's place would block or never end.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut text = String::new();
    fs::File::open(path)?
        .take(MAX_FILE_BYTES)
        .read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_current_context_is_read_from_the_configuration_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.json");
        assert_eq!(current(folder.path()), Ok(None));
        for (text, name) in [
            ("{}", None),
            (r#"{"currentContext": ""}"#, None),
            (
                r#"{"auths": {"r": {"auth": "x"}}, "currentContext": "lab"}"#,
                Some("lab"),
            ),
        ] {
            write(&file, text);
            assert_eq!(current(folder.path()).unwrap().as_deref(), name, "{text}");
        }
        write(
            &file,
            r#"{"auths": {"r": {"auth": "c2VjcmV0"}}, "currentContext": ["c2VjcmV0"]}"#,
        );
        let problem = current(folder.path()).unwrap_err();
        assert!(
            problem.contains("line 1") && !problem.contains("c2VjcmV0"),
            "{problem}"
        );
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert_eq!(current(folder.path()).unwrap_err(), "it is not a file");
    }

    #[test]
    fn a_context_is_found_by_the_name_in_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let meta = folder.path().join("contexts/meta");
        let problem = load(folder.path(), "lab").unwrap_err();
        assert!(problem.contains("does not exist"), "{problem}");
        write(
            &meta.join("aa/meta.json"),
            r#"{"Name": "other", "Endpoints": {"docker": {"Host": "tcp://o:1"}}}"#,
        );
        write(
            &meta.join("bb/meta.json"),
            r#"{"Name": "lab", "Metadata": {}, "Endpoints": {"docker": {"Host": "tcp://l:1", "SkipTLSVerify": false}}}"#,
        );
        write(
            &meta.join("cc/meta.json"),
            r#"{"Name": "loose", "Endpoints": {"docker": {"Host": "tcp://l:2", "SkipTLSVerify": true}}}"#,
        );
        write(
            &meta.join("dd/meta.json"),
            r#"{"Name": "kube", "Endpoints": {"kubernetes": {}}}"#,
        );
        write(&meta.join("ee/meta.json"), "not json");
        write(&folder.path().join("contexts/tls/bb/docker/ca.pem"), "x");

        let lab = load(folder.path(), "lab").unwrap();
        let tls = folder.path().join("contexts/tls/bb/docker");
        assert_eq!(
            lab,
            Context {
                host: "tcp://l:1".to_owned(),
                skip_tls_verify: false,
                tls: Some(tls)
            }
        );
        let loose = load(folder.path(), "loose").unwrap();
        assert_eq!(
            loose,
            Context {
                host: "tcp://l:2".to_owned(),
                skip_tls_verify: true,
                tls: None
            }
        );
        let problem = load(folder.path(), "kube").unwrap_err();
        assert!(problem.contains("no docker endpoint"), "{problem}");
        let problem = load(folder.path(), "zork").unwrap_err();
        assert!(
            problem.contains("no context of this name") && problem.contains("ee/meta.json"),
            "{problem}"
        );
    }
}

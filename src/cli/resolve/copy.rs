//! From what was typed after `cp` to what is copied.

use gym_sandbox::docker::DockerConfig;
use gym_sandbox::{Error, Operation, Result, UploadOptions};

use crate::cli::args::CpArgs;
use crate::cli::output::Format;

/// Files to copy.
#[derive(Debug)]
pub(in crate::cli) struct CopyRequest {
    pub(in crate::cli) config: DockerConfig,
    pub(in crate::cli) source: CopyEnd,
    pub(in crate::cli) target: CopyEnd,
    pub(in crate::cli) upload: UploadOptions,
    pub(in crate::cli) format: Format,
}

/// One end of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) enum CopyEnd {
    /// A path of this machine; `-` is standard input or output.
    Local(String),
    /// A path in a sandbox.
    Sandbox { id: String, path: String },
}

/// Makes the request.
#[expect(
    clippy::needless_pass_by_value,
    reason = "all commands hand their arguments over"
)]
pub(super) fn request(args: CpArgs, config: DockerConfig, format: Format) -> Result<CopyRequest> {
    let (source, target) = (end(&args.source)?, end(&args.target)?);
    let mut upload = UploadOptions::default();
    upload.owner = args.owner;
    upload.mode = args.mode;
    match (&source, &target) {
        (CopyEnd::Local(_), CopyEnd::Sandbox { .. }) => {}
        (CopyEnd::Sandbox { .. }, CopyEnd::Local(_)) if upload.owner.is_none() && upload.mode.is_none() => {}
        (CopyEnd::Sandbox { .. }, CopyEnd::Local(_)) => {
            return Err(Error::invalid(
                Operation::Configure,
                "--owner and --mode are for copies into a sandbox",
            ));
        }
        _ => {
            return Err(Error::invalid(
                Operation::Configure,
                "exactly one of SRC and DST is a path in a sandbox, as in `ID:/work/file`",
            )
            .with_hint("write a local path with a colon as `./a:b`"));
        }
    }
    Ok(CopyRequest {
        config,
        source,
        target,
        upload,
        format,
    })
}

/// Reads `ID:PATH`. A colon behind a slash, or behind a dot at the begin, belongs to a local path.
fn end(text: &str) -> Result<CopyEnd> {
    match text.split_once(':') {
        Some((id, path)) if !id.is_empty() && !id.contains('/') && !id.starts_with('.') => {
            if path.is_empty() {
                return Err(Error::invalid(
                    Operation::Configure,
                    format!("`{}` names no path in the sandbox", text.escape_debug()),
                ));
            }
            let path = if path.starts_with('/') {
                path.to_owned()
            } else {
                format!("/{path}")
            };
            Ok(CopyEnd::Sandbox {
                id: id.to_owned(),
                path,
            })
        }
        _ if text.is_empty() => Err(Error::invalid(Operation::Configure, "a path is empty")),
        _ => Ok(CopyEnd::Local(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_a_sandbox_only_by_its_id() {
        let sandbox = |id: &str, path: &str| CopyEnd::Sandbox {
            id: id.to_owned(),
            path: path.to_owned(),
        };
        for (text, expected) in [
            ("id:/a", sandbox("id", "/a")),
            ("id:a/b/", sandbox("id", "/a/b/")),
            ("id:/a:b", sandbox("id", "/a:b")),
            ("./a:b", CopyEnd::Local("./a:b".to_owned())),
            ("/a:b", CopyEnd::Local("/a:b".to_owned())),
            ("../a:b", CopyEnd::Local("../a:b".to_owned())),
            (":b", CopyEnd::Local(":b".to_owned())),
            ("-", CopyEnd::Local("-".to_owned())),
        ] {
            assert_eq!(end(text).unwrap(), expected, "{text}");
        }
        assert!(end("id:").is_err() && end("").is_err());
    }
}

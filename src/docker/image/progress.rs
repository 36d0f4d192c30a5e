//! The engine's messages of a pull as neutral events. Pure.

use bollard::models::CreateImageInfo;

use crate::spec::{ImageEvent, LayerState};

/// The statuses that are about a layer.
const LAYERS: [(&str, LayerState); 8] = [
    ("Pulling fs layer", LayerState::Waiting),
    ("Waiting", LayerState::Waiting),
    ("Downloading", LayerState::Downloading),
    ("Verifying Checksum", LayerState::Downloaded),
    ("Download complete", LayerState::Downloaded),
    ("Extracting", LayerState::Extracting),
    ("Pull complete", LayerState::Complete),
    ("Already exists", LayerState::Complete),
];

pub(super) fn event_of(message: CreateImageInfo) -> Option<ImageEvent> {
    let status = message.status?;
    let detail = message.progress_detail.unwrap_or_default();
    let bytes = |count: Option<i64>| count.and_then(|count| u64::try_from(count).ok());
    let state = LAYERS.iter().find(|(text, _)| *text == status);
    Some(match (state, message.id) {
        (Some(&(_, state)), Some(id)) => ImageEvent::Layer {
            id,
            state,
            current_bytes: bytes(detail.current).unwrap_or_default(),
            total_bytes: bytes(detail.total).filter(|&total| total > 0),
        },
        (_, Some(id)) => ImageEvent::Status(format!("{id}: {status}")),
        (_, None) => ImageEvent::Status(status),
    })
}

#[cfg(test)]
mod tests {
    use bollard::models::ProgressDetail;

    use super::*;

    fn message(status: &str, id: Option<&str>, progress: Option<(i64, i64)>) -> CreateImageInfo {
        CreateImageInfo {
            id: id.map(str::to_owned),
            status: Some(status.to_owned()),
            progress_detail: progress.map(|(current, total)| ProgressDetail {
                current: Some(current),
                total: Some(total),
            }),
            ..CreateImageInfo::default()
        }
    }

    #[test]
    fn d12_what_the_engine_says_of_layers_is_told_in_neutral_words() {
        let layer = |state, current_bytes, total_bytes| ImageEvent::Layer {
            id: "abc".to_owned(),
            state,
            current_bytes,
            total_bytes,
        };
        for (message, event) in [
            (
                message("Downloading", Some("abc"), Some((1, 9))),
                layer(LayerState::Downloading, 1, Some(9)),
            ),
            // The engine does not know the size.
            (
                message("Extracting", Some("abc"), Some((5, -1))),
                layer(LayerState::Extracting, 5, None),
            ),
            (
                message("Already exists", Some("abc"), None),
                layer(LayerState::Complete, 0, None),
            ),
            (
                message("Retrying in 5 seconds", Some("abc"), None),
                ImageEvent::Status("abc: Retrying in 5 seconds".to_owned()),
            ),
            (
                message("Status: Image is up to date", None, None),
                ImageEvent::Status("Status: Image is up to date".to_owned()),
            ),
        ] {
            assert_eq!(event_of(message), Some(event));
        }
        assert_eq!(event_of(CreateImageInfo::default()), None);
    }
}

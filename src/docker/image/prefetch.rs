//! Many images at once, with a look at the room on the disk.

use std::sync::{Arc, Mutex, PoisonError};

use futures::{StreamExt, stream};
use tokio::sync::Notify;

use crate::error::{Error, Result};
use crate::spec::{ImageCallback, ImageDetail, PrefetchOptions, Prefetched, PullPolicy};

use super::super::DockerProvider;
use super::ImageReference;
use super::disk::Room;

impl DockerProvider {
    pub(super) async fn prefetch_all(
        &self,
        images: &[String],
        options: &PrefetchOptions,
    ) -> Result<Vec<Prefetched>> {
        let references = images
            .iter()
            .map(|image| image.parse())
            .collect::<Result<Vec<ImageReference>>>()?;
        self.engine().await?;
        let work = references
            .into_iter()
            .enumerate()
            .map(|(place, image)| async move {
                match self.prefetch_one(place, &image, options).await {
                    Ok((detail, true)) => Prefetched::Pulled(detail),
                    Ok((detail, false)) => Prefetched::Present(detail),
                    Err(error) => Prefetched::Failed(error),
                }
            });
        // Pulls wait in their lane; what is only looked up does not wait for them.
        Ok(stream::iter(work)
            .buffered(self.config().lanes.pull.max(1) * 2)
            .collect()
            .await)
    }

    async fn prefetch_one(
        &self,
        place: usize,
        image: &ImageReference,
        options: &PrefetchOptions,
    ) -> Result<(ImageDetail, bool)> {
        let platform = options.pull.platform.as_deref();
        if options.pull.policy != PullPolicy::Always
            && let Some(detail) = self.describe_image(image, platform).await?
        {
            return Ok((detail, false));
        }
        let free = if options.min_free_bytes > 0 {
            self.free_disk_bytes().await
        } else {
            None
        };
        let room = free.map(|free| Arc::new(Mutex::new(Room::new(free, options.min_free_bytes))));
        let full = |room: &Option<Arc<Mutex<Room>>>| -> Option<Error> {
            let room = room.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
            room.check(&image.to_string())
        };
        if let Some(error) = full(&room) {
            return Err(error);
        }
        let too_large = Arc::new(Notify::new());
        let progress = {
            let (room, too_large) = (room.clone(), Arc::clone(&too_large));
            let (name, outer) = (image.to_string(), options.progress.clone());
            let inner = options.pull.progress.clone();
            ImageCallback::new(move |event| {
                if let Some(progress) = &outer {
                    progress.call(place, event);
                }
                if let Some(progress) = &inner {
                    progress.call(event);
                }
                if let Some(room) = &room {
                    let mut room = room.lock().unwrap_or_else(PoisonError::into_inner);
                    room.note(event);
                    if room.check(&name).is_some() {
                        too_large.notify_one();
                    }
                }
            })
        };
        tokio::select! {
            provided = self.provide_image(image, &options.pull, Some(&progress)) => provided,
            () = too_large.notified() => match full(&room) {
                Some(error) => Err(error),
                None => self.provide_image(image, &options.pull, Some(&progress)).await,
            },
        }
    }
}

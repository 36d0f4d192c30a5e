//! One case: its name, what it needs, and how it is run so that nothing of it is left.

use std::fmt;
use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::provider::{Capability, capabilities};

use super::{Context, Failure, Outcome};

type Run = for<'a> fn(&'a Context) -> BoxFuture<'a, Outcome>;

/// One case of the suite.
#[derive(Clone, Copy)]
pub struct Case {
    theme: &'static str,
    name: &'static str,
    needs: Option<Need>,
    run: Run,
}

/// What a case can't do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Need {
    /// A capability of the provider.
    Capability(Capability),
    /// Sandboxes made from images: the context's spec names one.
    Image,
    /// A second user: [`Context::with_user`].
    User,
    /// A server in the image: [`Context::with_server`]. Implies [`Capability::Endpoint`].
    Server,
    /// A way to see what is left: [`Context::with_survey`].
    Survey,
}

/// Why a case is not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Skip {
    /// The provider lacks the capability, and says so.
    Lacks(Capability),
    /// The context does not bring what the case needs.
    NotGiven(Need),
    /// The provider does something else on purpose, for this reason: [`Context::with_exemption`].
    Exempt(&'static str),
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lacks(capability) => write!(f, "the provider has no {capability}"),
            Self::Exempt(reason) => f.write_str(reason),
            Self::NotGiven(Need::Image) => f.write_str("the context names no image"),
            Self::NotGiven(Need::User) => f.write_str("the context names no second user"),
            Self::NotGiven(Need::Server) => f.write_str("the context names no server"),
            Self::NotGiven(Need::Survey) => f.write_str("the context has no survey"),
            Self::NotGiven(Need::Capability(capability)) => write!(f, "the context has no {capability}"),
        }
    }
}

impl Case {
    pub(super) fn new(theme: &'static str, name: &'static str, needs: Option<Need>, run: Run) -> Self {
        Self {
            theme,
            name,
            needs,
            run,
        }
    }

    /// What the case is about, as in `exec`.
    pub fn theme(&self) -> &'static str {
        self.theme
    }

    /// What must hold, as in `exit_codes_are_exact`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What the case can't do without.
    pub fn needs(&self) -> Option<Need> {
        self.needs
    }

    /// Says why the case can't be run here. None: it can.
    pub fn skip(&self, context: &Context) -> Option<Skip> {
        let lacks = |capability| {
            (!capabilities(&**context.provider()).contains(&capability)).then_some(Skip::Lacks(capability))
        };
        if let Some(reason) = context.exemption(&self.to_string()) {
            return Some(Skip::Exempt(reason));
        }
        let need = self.needs?;
        let not_given = |given: bool| (!given).then_some(Skip::NotGiven(need));
        match need {
            Need::Capability(capability) => lacks(capability),
            Need::Image => not_given(context.image().is_some()),
            Need::User => not_given(context.user().is_some()),
            Need::Server => lacks(Capability::Endpoint).or_else(|| not_given(context.has_server())),
            Need::Survey => not_given(context.has_survey()),
        }
    }

    /// Runs the case, and removes what it made in any case. A panic is a failure; so is running out of the context's
    /// [deadline](Context::with_deadline), and leaving something that the context's [survey](Context::with_survey)
    /// sees.
    ///
    /// # Errors
    /// What the provider did instead of what it must do.
    ///
    /// # Cancel safety
    /// What the case had made is removed in the background.
    pub async fn run(&self, context: &Context) -> Outcome {
        let context = context.for_case(self.theme, self.name);
        let case = AssertUnwindSafe((self.run)(&context)).catch_unwind();
        let outcome = match tokio::time::timeout(context.deadline(), case).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(panic)) => Err(Failure::new(format!("the case panicked: {}", text_of(&*panic)))),
            Err(_) => Err(Failure::new(format!(
                "the case did not end in {:?}",
                context.deadline()
            ))),
        };
        // A failure of the case says more than what it left behind.
        outcome.and(context.clean_up().await)
    }
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("with something that is no text")
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.theme, self.name)
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case")
            .field("name", &self.to_string())
            .field("needs", &self.needs)
            .finish_non_exhaustive()
    }
}

/// Lists the cases of a theme. A need stands behind the name of a case.
macro_rules! cases {
    ($theme:literal: $($name:ident $(needs $need:expr)?),+ $(,)?) => {
        /// The cases of this theme.
        pub fn cases() -> Vec<$crate::conformance::Case> {
            vec![$($crate::conformance::Case::new(
                $theme,
                stringify!($name),
                $crate::conformance::case::need!($($need)?),
                |context| Box::pin($name(context)),
            )),+]
        }
    };
}

macro_rules! need {
    () => {
        None
    };
    ($need:expr) => {
        Some($need)
    };
}

pub(super) use {cases, need};

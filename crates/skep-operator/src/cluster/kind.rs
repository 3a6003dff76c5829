//! Types that stand for a kind without being its whole object.

/// Within `impl kube::Resource`: the type is called what another one is called, and lives where its objects live.
macro_rules! named_as {
    ($kind:ty) => {
        type DynamicType = ();
        type Scope = k8s_openapi::NamespaceResourceScope;

        fn kind((): &()) -> std::borrow::Cow<'_, str> {
            <$kind as kube::Resource>::kind(&())
        }

        fn group((): &()) -> std::borrow::Cow<'_, str> {
            <$kind as kube::Resource>::group(&())
        }

        fn version((): &()) -> std::borrow::Cow<'_, str> {
            <$kind as kube::Resource>::version(&())
        }

        fn plural((): &()) -> std::borrow::Cow<'_, str> {
            <$kind as kube::Resource>::plural(&())
        }
    };
}
pub(super) use named_as;

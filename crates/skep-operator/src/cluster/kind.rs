//! Types that stand for a kind without being its whole object.

/// Within `impl kube::Resource`: the type is called what another one is called, and lives where its objects live;
/// with the name of a member, that member is its metadata.
macro_rules! named_as {
    ($kind:ty, $metadata:ident) => {
        named_as!($kind);

        fn meta(&self) -> &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
            &self.$metadata
        }

        fn meta_mut(&mut self) -> &mut k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
            &mut self.$metadata
        }
    };
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

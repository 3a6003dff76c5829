//! Deployments, ReplicaSets, StatefulSets, and the claims in the latter.

use serde_json::{Value, json};

use super::pod::template;
use super::{each, empty, fill, fill_zero, text, with};

pub(super) fn deployment(object: &mut Value) {
    with(object, "spec", |spec| {
        fill(spec, "replicas", 1);
        fill(spec, "strategy", empty());
        with(spec, "strategy", |strategy| {
            fill_zero(strategy, "type", "RollingUpdate");
            if text(strategy, "type") == "RollingUpdate" {
                fill(strategy, "rollingUpdate", empty());
                with(strategy, "rollingUpdate", |rolling| {
                    fill(rolling, "maxUnavailable", "25%");
                    fill(rolling, "maxSurge", "25%");
                });
            }
        });
        fill(spec, "revisionHistoryLimit", 10);
        fill(spec, "progressDeadlineSeconds", 600);
        template(spec);
    });
}

pub(super) fn replica_set(object: &mut Value) {
    with(object, "spec", |spec| {
        fill(spec, "replicas", 1);
        template(spec);
    });
}

pub(super) fn stateful_set(object: &mut Value) {
    with(object, "spec", |spec| {
        fill_zero(spec, "podManagementPolicy", "OrderedReady");
        fill(spec, "updateStrategy", empty());
        with(spec, "updateStrategy", |strategy| {
            fill_zero(strategy, "type", "RollingUpdate");
            if text(strategy, "type") == "RollingUpdate" {
                fill(strategy, "rollingUpdate", empty());
                with(strategy, "rollingUpdate", |rolling| fill(rolling, "partition", 0));
            }
        });
        fill(spec, "persistentVolumeClaimRetentionPolicy", empty());
        with(spec, "persistentVolumeClaimRetentionPolicy", |policy| {
            fill_zero(policy, "whenDeleted", "Retain");
            fill_zero(policy, "whenScaled", "Retain");
        });
        fill(spec, "replicas", 1);
        fill(spec, "revisionHistoryLimit", 10);
        template(spec);
        each(spec, "volumeClaimTemplates", |template| {
            fill_zero(template, "kind", "PersistentVolumeClaim");
            fill_zero(template, "apiVersion", "v1");
            claim(template);
        });
    });
}

pub(super) fn claim(object: &mut Value) {
    fill(object, "status", json!({}));
    with(object, "status", |status| fill_zero(status, "phase", "Pending"));
    with(object, "spec", |spec| fill(spec, "volumeMode", "Filesystem"));
}

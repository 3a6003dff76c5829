"""Reads what was told about requests with what others wrote for it, and prints it as JSON.

read.py traces|metrics < lines of hexadecimal digits, one request to a collector each
read.py page < what Prometheus gets
"""

import json
import sys


def attributes(pairs):
    kinds = {"string_value": str, "bool_value": bool, "int_value": int, "double_value": float}
    found = {}
    for pair in pairs:
        kind = pair.value.WhichOneof("value")
        assert pair.key not in found, f"{pair.key} is there twice"
        found[pair.key] = kinds[kind](getattr(pair.value, kind))
    return found


def traces(requests):
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    for request in requests:
        for resource in ExportTraceServiceRequest.FromString(request).resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano
                    yield {
                        "resource": attributes(resource.resource.attributes),
                        "scope": scope.scope.name,
                        "trace": span.trace_id.hex(),
                        "span": span.span_id.hex(),
                        "parent": span.parent_span_id.hex(),
                        "state": span.trace_state,
                        "flags": span.flags,
                        "name": span.name,
                        "kind": span.kind,
                        "status": span.status.code,
                        "words": span.status.message,
                        "attributes": attributes(span.attributes),
                    }


def metrics(requests):
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

    for request in requests:
        for resource in ExportMetricsServiceRequest.FromString(request).resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    kind = metric.WhichOneof("data")
                    data = getattr(metric, kind)
                    points = []
                    for point in data.data_points:
                        assert 0 < point.start_time_unix_nano <= point.time_unix_nano
                        told = {"attributes": attributes(point.attributes)}
                        if kind == "histogram":
                            assert sum(point.bucket_counts) == point.count
                            told |= {"count": point.count, "sum": point.sum, "bounds": list(point.explicit_bounds)}
                        else:
                            told["value"] = point.as_int
                        points.append(told)
                    yield {
                        "resource": attributes(resource.resource.attributes),
                        "name": metric.name,
                        "unit": metric.unit,
                        "kind": kind,
                        "is_cumulative": data.aggregation_temporality == 2,
                        "is_monotonic": getattr(data, "is_monotonic", None),
                        "points": points,
                    }


def page(text):
    from prometheus_client.parser import text_string_to_metric_families

    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            value = int(sample.value) if float(sample.value).is_integer() else sample.value
            yield {"kind": family.type, "name": sample.name, "labels": sample.labels, "value": value}


if sys.argv[1] == "page":
    print(json.dumps(list(page(sys.stdin.read()))))
else:
    requests = [bytes.fromhex(line) for line in sys.stdin.read().split()]
    print(json.dumps(list({"traces": traces, "metrics": metrics}[sys.argv[1]](requests))))

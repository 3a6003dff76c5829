// Prints how Kubernetes' types are written in protobuf and in JSON, for crates/skep-kube/src/protobuf/messages.tsv.
//
//	go run ./messages apps/v1/Deployment v1/Pod …
//
// The arguments are kinds; every message that they lead to is printed. A line is the name of a message, followed by the
// version if it is that of a kind (`*` for kinds that are the same in all versions), or, indented, one of its members:
//
//	NUMBER MEMBER TYPE FLAGS
//
// A type is a name of ours for a scalar or for a type with a JSON form of its own, or the name of a message; `list:` and
// `map:` stand before it. Flags: `*` tells absent from zero, `?` leaves out of JSON what has no value, `0` leaves out
// what is zero, `^` has its members in the JSON object around it.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
)

// Types whose JSON form does not follow from their members.
var special = map[reflect.Type]string{
	reflect.TypeFor[meta.Time]():                                  "time",
	reflect.TypeFor[meta.MicroTime]():                             "microtime",
	reflect.TypeFor[meta.FieldsV1]():                              "raw",
	reflect.TypeFor[runtime.RawExtension]():                       "raw",
	reflect.TypeFor[apiextensions.JSON]():                         "raw",
	reflect.TypeFor[resource.Quantity]():                          "quantity",
	reflect.TypeFor[intstr.IntOrString]():                         "intorstring",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrArray]():       "schemaorarray",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrBool]():        "schemaorbool",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrStringArray](): "schemaorstrings",
}

// Messages that are no kinds of one group.
var always = []reflect.Type{
	reflect.TypeFor[meta.Status](),
	reflect.TypeFor[meta.DeleteOptions](),
	reflect.TypeFor[meta.PartialObjectMetadata](),
	reflect.TypeFor[meta.PartialObjectMetadataList](),
}

var (
	unmarshaler = reflect.TypeFor[interface{ Unmarshal([]byte) error }]()
	marshaler   = reflect.TypeFor[json.Marshaler]()
	typeMeta    = reflect.TypeFor[meta.TypeMeta]()
)

type table map[string][]string

func main() {
	if err := apiextensions.AddToScheme(scheme.Scheme); err != nil {
		fail("%v", err)
	}
	messages := table{}
	versions := map[string]string{}
	for _, kind := range always {
		versions[messages.add(kind)] = "\t*"
	}
	for _, argument := range os.Args[1:] {
		at := strings.LastIndex(argument, "/")
		if at < 0 {
			fail("%s is not of the form VERSION/KIND", argument)
		}
		object, err := scheme.Scheme.New(schema.FromAPIVersionAndKind(argument[:at], argument[at+1:]))
		if err != nil {
			fail("%v", err)
		}
		versions[messages.add(reflect.TypeOf(object).Elem())] = "\t" + argument[:at]
	}
	names := make([]string, 0, len(messages))
	for name := range messages {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Println("# Made by tools/control-plane/messages, which explains it; do not edit.")
	for _, name := range names {
		fmt.Println(name + versions[name])
		for _, member := range messages[name] {
			fmt.Println("\t" + member)
		}
	}
}

// Adds a message and those that it leads to.
func (messages table) add(message reflect.Type) string {
	path := strings.Split(message.PkgPath(), "/")
	name := strings.Join(append(path[len(path)-2:], message.Name()), ".")
	if _, found := messages[name]; found {
		return name
	}
	if message.Implements(marshaler) {
		fail("%s has a JSON form of its own", name)
	}
	messages[name] = nil
	members := map[int]string{}
	numbers := []int{}
	for index := range message.NumField() {
		field := message.Field(index)
		if field.Type == typeMeta {
			continue
		}
		number, member := messages.member(name, field)
		members[number] = member
		numbers = append(numbers, number)
	}
	sort.Ints(numbers)
	for _, number := range numbers {
		messages[name] = append(messages[name], members[number])
	}
	return name
}

func (messages table) member(message string, field reflect.StructField) (int, string) {
	tag := strings.Split(field.Tag.Get("protobuf"), ",")
	if len(tag) < 2 {
		fail("%s.%s is not part of the protobuf message", message, field.Name)
	}
	number, err := strconv.Atoi(tag[1])
	if err != nil {
		fail("%s.%s has the number %q", message, field.Name, tag[1])
	}
	name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	flags := ""
	kind := field.Type
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
		flags += "*"
	}
	for _, option := range strings.Split(options, ",") {
		switch option {
		case "omitempty":
			flags += "?"
		case "omitzero":
			flags += "0"
		case "inline":
			flags += "^"
		case "":
		default:
			fail("%s.%s has the JSON option %q", message, field.Name, option)
		}
	}
	if strings.Contains(flags, "^") {
		if name != "" || flags != "^" {
			fail("%s.%s is inline and more", message, field.Name)
		}
		name = "-"
	} else if name == "" {
		fail("%s.%s has no name in JSON", message, field.Name)
	}
	if flags == "" {
		flags = "-"
	}
	return number, fmt.Sprintf("%d\t%s\t%s\t%s", number, name, messages.kind(message, kind), flags)
}

func (messages table) kind(message string, kind reflect.Type) string {
	if name, found := special[kind]; found {
		return name
	}
	if kind.Kind() != reflect.Struct && reflect.PointerTo(kind).Implements(unmarshaler) {
		if kind.Kind() == reflect.Slice && kind.Elem().Kind() == reflect.String {
			return "strings"
		}
		fail("%s: %s is a message of its own", message, kind)
	}
	switch kind.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int32:
		return "int32"
	case reflect.Int64:
		return "int64"
	case reflect.Float64:
		return "double"
	case reflect.Struct:
		return messages.add(kind)
	case reflect.Slice:
		if kind.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "list:" + messages.kind(message, kind.Elem())
	case reflect.Map:
		if kind.Key().Kind() == reflect.String {
			return "map:" + messages.kind(message, kind.Elem())
		}
	}
	fail("%s: no name for %s", message, kind)
	return ""
}

func fail(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
	os.Exit(1)
}

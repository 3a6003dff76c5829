// Prints how Kubernetes' types hold each member, for crates/skep-kube/examples/facts.rs, which explains the columns.
//
//	go run ./shapes > SHAPES
package main

import (
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

func main() {
	if err := apiextensions.AddToScheme(scheme.Scheme); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	rows := table{}
	for _, kind := range scheme.Scheme.AllKnownTypes() {
		rows.add(kind)
	}
	names := make([]string, 0, len(rows))
	for name := range rows {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		for _, row := range rows[name] {
			fmt.Println(row)
		}
	}
}

// Rows by the name of their definition.
type table map[string][]string

// Adds a definition and those that it leads to.
func (rows table) add(definition reflect.Type) {
	name := nameOf(definition)
	if _, found := rows[name]; found {
		return
	}
	rows[name] = []string{}
	rows.members(name, definition, nil)
}

func (rows table) members(name string, holder reflect.Type, inline []string) {
	for index := range holder.NumField() {
		field := holder.Field(index)
		member, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if member == "-" || !field.IsExported() {
			continue
		}
		if member == "" && field.Type.Kind() == reflect.Struct && strings.Contains(options, "inline") {
			rows.members(name, field.Type, append(inline[:len(inline):len(inline)], field.Name))
			continue
		}
		rows.follow(field.Type)
		row := []string{name, member, shapeOf(field.Type), options, typeName(field.Type), strings.Join(inline, ".")}
		rows[name] = append(rows[name], strings.Join(row, "\t"))
	}
}

func (rows table) follow(kind reflect.Type) {
	switch kind.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		rows.follow(kind.Elem())
	case reflect.Struct:
		if strings.HasPrefix(kind.PkgPath(), "k8s.io/") {
			rows.add(kind)
		}
	}
}

// The kind of a type, with a star where it is pointed at.
func shapeOf(kind reflect.Type) string {
	if kind.Kind() == reflect.Pointer {
		return "*" + kind.Elem().Kind().String()
	}
	return kind.Kind().String()
}

// What a type is called, where that is more than the kinds of its parts.
func typeName(kind reflect.Type) string {
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	if hasName(kind) {
		return kind.String()
	}
	return ""
}

func hasName(kind reflect.Type) bool {
	switch {
	case kind.PkgPath() != "":
		return kind.Kind() != reflect.Struct
	case kind.Kind() == reflect.Slice:
		return hasName(kind.Elem())
	case kind.Kind() == reflect.Map:
		return hasName(kind.Key()) || hasName(kind.Elem())
	}
	return false
}

// `io.k8s.api.core.v1.Pod`, as OpenAPI documents call it.
func nameOf(kind reflect.Type) string {
	return strings.ReplaceAll(strings.Replace(kind.PkgPath(), "k8s.io/", "io.k8s.", 1), "/", ".") + "." + kind.Name()
}

package service

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// The rules of the configuration's fields, as its proto states them.
const (
	longestValue   = 1000000
	mostOperations = 100
	mostCommitted  = 1000000
	mostWatchKeys  = 1000
)

// isKey says whether a key can be called so.
func isKey(text string) bool { return BrokenNameRule(text) == "" }

// parsePrefix checks a prefix of keys; it may be empty.
func parsePrefix(value string) (string, error) {
	if value == "" {
		return "", nil
	}
	_, err := parseName("prefix", value)
	return value, err
}

func parseConsistency(value configv1.Consistency) (latest bool, err error) {
	switch value {
	case configv1.Consistency_CONSISTENCY_UNSPECIFIED, configv1.Consistency_CONSISTENCY_LOCAL:
		return false, nil
	case configv1.Consistency_CONSISTENCY_LINEARIZABLE:
		return true, nil
	default:
		return false, invalid("consistency", value.String(), "LOCAL or LINEARIZABLE")
	}
}

// parsePut checks a put, which stands in this part of a request.
func parsePut(part string, request *configv1.PutRequest) (recipes.Operation, error) {
	operation, err := parseKeyed(recipes.ActionPut, part, request.GetKey(), request.GetPrecondition())
	if err != nil {
		return operation, err
	}
	field := part + "value"
	switch content := request.GetContent().(type) {
	case *configv1.PutRequest_Value:
		operation.Value = content.Value
	case *configv1.PutRequest_Text:
		field, operation.Value = part+"text", []byte(content.Text)
	default:
		return operation, invalid(field, "", "either value or text is required; it may be empty")
	}
	if part != "" && len(request.GetGuards()) > 0 {
		return operation, invalid(part+"guards", "some", "none: a Commit has guards of its own")
	}
	if len(operation.Value) > longestValue {
		return operation, invalid(field, fmt.Sprintf("%d bytes long", len(operation.Value)), fmt.Sprintf("at most %d bytes", longestValue))
	}
	return operation, nil
}

func parseDelete(part string, request *configv1.DeleteRequest) (recipes.Operation, error) {
	operation, err := parseKeyed(recipes.ActionDelete, part, request.GetKey(), request.GetPrecondition())
	switch {
	case err != nil:
		return operation, err
	case operation.Require.Demand == recipes.DemandMissing:
		return operation, invalid(part+"precondition", "must_not_exist", "what must not exist cannot be deleted")
	case request.GetRecursive() && part != "":
		return operation, invalid(part+"recursive", "true", "false: a Commit deletes each key by itself")
	case request.GetRecursive() && request.GetPrecondition() != nil:
		return operation, invalid(part+"precondition", "one", "none together with recursive")
	case request.GetRecursive() && len(request.GetGuards()) > 0:
		return operation, invalid("guards", "some", "none together with recursive, which is not one transaction")
	case part != "" && len(request.GetGuards()) > 0:
		return operation, invalid(part+"guards", "some", "none: a Commit has guards of its own")
	}
	return operation, nil
}

func parseCheck(part string, request *configv1.CheckRequest) (recipes.Operation, error) {
	operation, err := parseKeyed(recipes.ActionCheck, part, request.GetKey(), request.GetPrecondition())
	if err == nil && operation.Require.Demand == recipes.DemandNothing {
		err = invalid(part+"precondition", "", "a check has a precondition")
	}
	return operation, err
}

func parseKeyed(
	action recipes.Action, part, key string, precondition *configv1.Precondition,
) (operation recipes.Operation, err error) {
	operation.Action = action
	parsed, err := parseName(part+"key", key)
	if err != nil {
		return operation, err
	}
	operation.Key = parsed.text
	operation.Require, err = parsePrecondition(part+"precondition", precondition)
	return operation, err
}

// parsePrecondition checks a precondition; without one, nothing is demanded.
func parsePrecondition(field string, value *configv1.Precondition) (recipes.Precondition, error) {
	if value == nil {
		return recipes.Precondition{}, nil
	}
	switch condition := value.GetCondition().(type) {
	case *configv1.Precondition_Version:
		if condition.Version < 0 {
			return recipes.Precondition{}, invalid(field+".version", strconv.Itoa(int(condition.Version)), "a key's, from 0")
		}
		return recipes.Precondition{Demand: recipes.DemandVersion, Version: condition.Version}, nil
	case *configv1.Precondition_MustNotExist:
		if condition.MustNotExist {
			return recipes.Precondition{Demand: recipes.DemandMissing}, nil
		}
		return recipes.Precondition{}, invalid(field+".must_not_exist", "false", "true")
	case *configv1.Precondition_MustExist:
		if condition.MustExist {
			return recipes.Precondition{Demand: recipes.DemandExists}, nil
		}
		return recipes.Precondition{}, invalid(field+".must_exist", "false", "true")
	}
	return recipes.Precondition{}, invalid(field, "", "version, must_not_exist or must_exist")
}

// parseOperations checks the operations of a Commit, each by itself and all together.
func parseOperations(wire []*configv1.Operation) ([]recipes.Operation, error) {
	if len(wire) == 0 || len(wire) > mostOperations {
		return nil, invalid("operations", strconv.Itoa(len(wire))+" operations", fmt.Sprintf("from 1 to %d", mostOperations))
	}
	operations := make([]recipes.Operation, len(wire))
	size := 0
	for i, operation := range wire {
		var err error
		if operations[i], err = parseOperation(i, operation); err != nil {
			return nil, err
		}
		size += len(operations[i].Key) + len(operations[i].Value)
	}
	if size > mostCommitted {
		return nil, invalid("operations", fmt.Sprintf("%d bytes long", size),
			fmt.Sprintf("keys and values of at most %d bytes in all", mostCommitted))
	}
	return operations, parseTogether(operations)
}

func parseOperation(index int, wire *configv1.Operation) (recipes.Operation, error) {
	part := fmt.Sprintf("operations[%d].", index)
	switch operation := wire.GetOperation().(type) {
	case *configv1.Operation_Put:
		return parsePut(part+"put.", operation.Put)
	case *configv1.Operation_Delete:
		return parseDelete(part+"delete.", operation.Delete)
	case *configv1.Operation_Check:
		return parseCheck(part+"check.", operation.Check)
	}
	return recipes.Operation{}, invalid(strings.TrimSuffix(part, "."), "", "put, delete or check")
}

// parseTogether sees that no operation is in the way of another one.
func parseTogether(operations []recipes.Operation) error {
	actions := map[string]recipes.Action{}
	for i, operation := range operations {
		if actions[operation.Key] != 0 {
			return invalid(fmt.Sprintf("operations[%d]", i), operation.Key, "each operation has a key of its own")
		}
		actions[operation.Key] = operation.Action
	}
	for i, operation := range operations {
		if operation.Action == recipes.ActionDelete {
			continue
		}
		for at, c := range operation.Key {
			if c == '/' && actions[operation.Key[:at]] == recipes.ActionDelete {
				return invalid(fmt.Sprintf("operations[%d]", i), operation.Key, "what lies below a key that is deleted is deleted too")
			}
		}
	}
	return nil
}

// parseWatched checks what is to be watched.
func parseWatched(request *configv1.WatchRequest) (watchedKeys, error) {
	keys := slices.Sorted(slices.Values(request.GetKeys()))
	if len(keys) == 0 {
		prefix, err := parsePrefix(request.GetPrefix())
		return watchedKeys{below: true, keys: prefix}, err
	}
	if request.GetPrefix() != "" {
		return watchedKeys{}, invalid("prefix", request.GetPrefix(), "either keys or a prefix")
	}
	if len(keys) > mostWatchKeys {
		return watchedKeys{}, invalid("keys", strconv.Itoa(len(keys))+" keys", fmt.Sprintf("at most %d keys", mostWatchKeys))
	}
	for i, key := range keys {
		if _, err := parseName("keys", key); err != nil {
			return watchedKeys{}, err
		}
		if i > 0 && key == keys[i-1] {
			return watchedKeys{}, invalid("keys", key, "no key twice")
		}
	}
	return watchedKeys{keys: strings.Join(keys, "\n")}, nil
}

// entryOnWire is an entry, with its value as text if that is wanted and it is one.
func entryOnWire(entry *recipes.Entry, asText bool) *configv1.Entry {
	wire := &configv1.Entry{
		Key: entry.Key, Version: entry.Version, Revision: entry.Revision, CreatedRevision: entry.Created,
		Content: &configv1.Entry_Value{Value: entry.Value},
	}
	if asText && utf8.Valid(entry.Value) {
		wire.Content = &configv1.Entry_Text{Text: string(entry.Value)}
	}
	return wire
}

package service

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// configService answers sidekeeper.config.v1.ConfigService.
type configService struct {
	configv1.UnsafeConfigServiceServer

	services   *Services
	config     recipes.Config
	broadcasts *broadcasts[watchedKeys, *recipes.Mirror]
}

func (c *configService) Get(ctx context.Context, request *configv1.GetRequest) (*configv1.GetResponse, error) {
	key, err := parseName("key", request.GetKey())
	if err != nil {
		return nil, err
	}
	latest, err := parseConsistency(request.GetConsistency())
	if err != nil {
		return nil, err
	}
	if latest {
		if err := c.services.ensemble.CatchUp(ctx); err != nil {
			return nil, err
		}
	}
	entry, err := c.config.Get(ctx, c.services.ensemble, key.text)
	if err != nil {
		return nil, err
	}
	return &configv1.GetResponse{Entry: entryOnWire(&entry, request.GetAsText())}, nil
}

func (c *configService) Put(ctx context.Context, request *configv1.PutRequest) (*configv1.PutResponse, error) {
	operation, err := parsePut("", request)
	if err != nil {
		return nil, err
	}
	entries, err := c.commit(ctx, request.GetGuards(), operation)
	if err != nil {
		return nil, failureOf(err, false)
	}
	return &configv1.PutResponse{Version: entries[0].Version, Revision: entries[0].Revision}, nil
}

func (c *configService) Delete(ctx context.Context, request *configv1.DeleteRequest) (*configv1.DeleteResponse, error) {
	if request.GetRecursive() && !caller.MayOperate(ctx) {
		return nil, ErrOperatorOnly
	}
	operation, err := parseDelete("", request)
	if err != nil {
		return nil, err
	}
	if request.GetRecursive() {
		deleted, err := c.config.DeleteAll(ctx, c.services.ensemble, operation.Key)
		c.services.audit.removed(caller.Of(ctx), "keys", operation.Key, "", err)
		if err != nil {
			return nil, err
		}
		return &configv1.DeleteResponse{Deleted: int32(deleted)}, nil
	}
	if _, err := c.commit(ctx, request.GetGuards(), operation); err != nil {
		return nil, failureOf(err, false)
	}
	return &configv1.DeleteResponse{Deleted: 1}, nil
}

func (c *configService) Commit(ctx context.Context, request *configv1.CommitRequest) (*configv1.CommitResponse, error) {
	operations, err := parseOperations(request.GetOperations())
	if err != nil {
		return nil, err
	}
	entries, err := c.commit(ctx, request.GetGuards(), operations...)
	if err != nil {
		return nil, failureOf(err, true)
	}
	return &configv1.CommitResponse{Results: each(entries, func(entry recipes.Entry) *configv1.Result {
		return &configv1.Result{Version: entry.Version, Revision: entry.Revision}
	})}, nil
}

func (c *configService) commit(ctx context.Context, wire []*holdv1.Guard, operations ...recipes.Operation) ([]recipes.Entry, error) {
	var entries []recipes.Entry
	guards, err := c.services.parseGuards(ctx, wire)
	if err == nil {
		entries, err = c.config.Commit(ctx, guards.over(c.services.ensemble), operations...)
		err = guards.meaning(ctx, err)
	}
	c.services.audit.committed(caller.Of(ctx), guards, operations, entries, err)
	return entries, err
}

// failureOf tells the caller which key failed and, of several operations, which one.
func failureOf(err error, several bool) error {
	if errors.Is(err, recipes.ErrTooLarge) {
		return invalid("operations", "too long", fmt.Sprintf("keys and values of at most %d bytes in all", mostCommitted))
	}
	failure, failed := errors.AsType[*recipes.Failure](err)
	if !failed {
		return err
	}
	facts := map[string]string{"key": failure.Key}
	text := failure.Key
	if failure.Exists {
		facts["version"] = strconv.Itoa(int(failure.Version))
		text += " has version " + facts["version"]
	} else if errors.Is(failure.Err, recipes.ErrPrecondition) {
		text += " does not exist"
	}
	if several {
		facts["operation"] = strconv.Itoa(failure.Operation)
		text = "operation " + facts["operation"] + ": " + text
	}
	return &detailedError{kind: failure.Err, facts: facts, text: text}
}

// mostListed bounds a page of keys with their values, in bytes.
const mostListed = 3 << 20

func (c *configService) List(ctx context.Context, request *configv1.ListRequest) (*configv1.ListResponse, error) {
	page, err := parsePage(request)
	if err != nil {
		return nil, err
	}
	prefix, err := parsePrefix(request.GetPrefix())
	if err != nil {
		return nil, err
	}
	if page.after != "" && !isKey(page.after) {
		return nil, invalidToken(request)
	}
	entries, more, err := c.config.List(ctx, c.services.ensemble, recipes.Page{
		Prefix: prefix, After: page.after, Most: page.size, Bytes: mostListed, IsKey: isKey,
	})
	if err != nil {
		return nil, err
	}
	response := &configv1.ListResponse{Entries: each(entries, func(entry recipes.Entry) *configv1.Entry {
		return entryOnWire(&entry, request.GetAsText())
	})}
	if more {
		response.NextPageToken = nextToken(entries[len(entries)-1].Key)
	}
	return response, nil
}

func newConfigService(services *Services) *configService {
	c := &configService{services: services, config: recipes.Config{Root: services.options.ConfigRoot}}
	c.broadcasts = newBroadcastsOf(services.ensemble, c.reflectKeys)
	return c
}

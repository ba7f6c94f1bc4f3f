package inject

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/certificate"
	"github.com/sidekeeper/sidekeeper/internal/reload"
)

// An API says where Kubernetes' API is and who calls it. The zero value is what pods find: the variables that the kubelet sets,
// and the files of the service account.
type API struct {
	Server    string // https://host:port
	TokenFile string // read again for each request, since tokens are renewed
	CAFile    string
}

// The folder in which pods find the token of their service account.
const accountFolder = "/var/run/secrets/kubernetes.io/serviceaccount/"

// withDefaults fills in what pods find.
func (a API) withDefaults() (API, error) {
	if a.Server == "" {
		host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
		if host == "" || port == "" {
			return a, errors.New("not in a pod (KUBERNETES_SERVICE_HOST and _PORT are not set): --kube-api must say where the API server is")
		}
		a.Server = "https://" + net.JoinHostPort(host, port)
	}
	if a.TokenFile == "" {
		a.TokenFile = accountFolder + "token"
	}
	if a.CAFile == "" {
		a.CAFile = accountFolder + "ca.crt"
	}
	return a, nil
}

// A client is a [cluster] over Kubernetes' API.
type client struct {
	api     API
	http    *http.Client
	secret  string // its path in the API
	webhook string // the configuration's
}

// newClient makes a client for the Secret namespace/name and the MutatingWebhookConfiguration.
func newClient(api API, secret, webhook string) (*client, error) {
	namespace, name, ok := strings.Cut(secret, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("--secret %s: it must be namespace/name", secret)
	}
	if webhook == "" {
		return nil, errors.New("--webhook: missing name of the MutatingWebhookConfiguration")
	}
	api, err := api.withDefaults()
	if err != nil {
		return nil, err
	}
	authorities, err := reload.Read(api.CAFile)
	if err != nil {
		return nil, err
	}
	pool, err := certificate.Pool(authorities, api.CAFile)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool},
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 2,
		IdleConnTimeout:     time.Minute,
	}
	return &client{
		api:     api,
		http:    &http.Client{Transport: transport, Timeout: 10 * time.Second},
		secret:  "/api/v1/namespaces/" + url.PathEscape(namespace) + "/secrets/" + url.PathEscape(name),
		webhook: "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/" + url.PathEscape(webhook),
	}, nil
}

func (c *client) close() { c.http.CloseIdleConnections() }

// load reads the Secret. It is written back as it was read but for its data, with the version that was read, so that the API
// server refuses what is built on anything older.
func (c *client) load(ctx context.Context) (map[string][]byte, func(context.Context, map[string][]byte) error, error) {
	secret := map[string]any{}
	if err := c.do(ctx, http.MethodGet, c.secret, "", nil, &secret); err != nil {
		return nil, nil, err
	}
	encoded, err := json.Marshal(secret["data"])
	if err != nil {
		return nil, nil, err
	}
	data := map[string][]byte{}
	if err := json.Unmarshal(encoded, &data); err != nil {
		return nil, nil, fmt.Errorf("the Secret's data: %w", err)
	}
	save := func(ctx context.Context, changed map[string][]byte) error {
		secret["data"] = changed
		return c.do(ctx, http.MethodPut, c.secret, "application/json", secret, nil)
	}
	return data, save, nil
}

// announce puts the bundle into each webhook of the configuration that has another one.
func (c *client) announce(ctx context.Context, bundle []byte) (news bool, err error) {
	var configuration struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Webhooks []struct {
			ClientConfig struct {
				CABundle []byte `json:"caBundle"`
			} `json:"clientConfig"`
		} `json:"webhooks"`
	}
	if err := c.do(ctx, http.MethodGet, c.webhook, "", nil, &configuration); err != nil {
		return false, err
	}
	patch := []operation{{"test", "/metadata/resourceVersion", configuration.Metadata.ResourceVersion}}
	for i, webhook := range configuration.Webhooks {
		if !bytes.Equal(webhook.ClientConfig.CABundle, bundle) {
			patch = append(patch, operation{"add", fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", i), bundle})
		}
	}
	if len(patch) == 1 {
		return false, nil
	}
	return true, c.do(ctx, http.MethodPatch, c.webhook, "application/json-patch+json", patch, nil)
}

// do makes one request. The answer is decoded into result unless that is nil.
func (c *client) do(ctx context.Context, method, path, contentType string, body, result any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, c.api.Server+path, bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	token, err := reload.Read(c.api.TokenFile)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	request.Header.Set("Accept", "application/json")
	if contentType == "" {
		request.Body, request.ContentLength = nil, 0
	} else {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return readAnswer(response, method+" "+path, result)
}

// conflicts are how API servers refuse to change what has been changed since: a version that is not the newest, or a test in
// a patch that fails.
var conflicts = []int{http.StatusConflict, http.StatusUnprocessableEntity}

func readAnswer(response *http.Response, what string, result any) error {
	answer, err := io.ReadAll(io.LimitReader(response.Body, mostBytes))
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if response.StatusCode == http.StatusOK {
		if result == nil {
			return nil
		}
		return json.Unmarshal(answer, result)
	}
	var status struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(answer, &status) != nil || status.Message == "" {
		status.Message = response.Status
	}
	if slices.Contains(conflicts, response.StatusCode) {
		return fmt.Errorf("%s: %s: %w", what, status.Message, errConflict)
	}
	return fmt.Errorf("%s: %s", what, status.Message)
}

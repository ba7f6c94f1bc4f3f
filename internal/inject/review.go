package inject

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/internal/httpconns"
)

// What reviews may take, whoever sends them: an API server shows no certificate by default.
const (
	mostBytes   = 2 << 20         // of one, which is more than etcd stores of one object
	mostAtOnce  = 16              // that are read
	mostAnswers = 4               // of them that are answered
	longestUID  = 128             // bytes
	longestBody = 2 * time.Second // how long one may take to come
)

// A review is an AdmissionReview of admission.k8s.io/v1, as far as it is used.
type review struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Request    *reviewRequest  `json:"request,omitempty"`
	Response   *reviewResponse `json:"response,omitempty"`
}

type reviewRequest struct {
	UID       string          `json:"uid"`
	Namespace string          `json:"namespace"`
	Object    json.RawMessage `json:"object"`
}

type reviewResponse struct {
	UID       string        `json:"uid"`
	Allowed   bool          `json:"allowed"`
	PatchType string        `json:"patchType,omitempty"`
	Patch     []byte        `json:"patch,omitempty"`
	Warnings  []string      `json:"warnings,omitempty"`
	Status    *reviewStatus `json:"status,omitempty"`
}

type reviewStatus struct {
	Code    int    `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// A reviewer answers what an API server asks about a pod that is made.
type reviewer struct {
	pattern *Pattern
	check   Check
	log     *zap.Logger
	metrics *metrics
	bodies  *httpconns.Bodies
	turns   chan struct{} // of those that are answered, which waits for nothing
}

func newReviewer(pattern *Pattern, check Check, log *zap.Logger, metrics *metrics) *reviewer {
	return &reviewer{pattern, check, log, metrics, httpconns.NewBodies(mostAtOnce, mostBytes, longestBody), make(chan struct{}, mostAnswers)}
}

func (r *reviewer) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	leave := r.bodies.Read(w, request)
	if leave == nil {
		return
	}
	code, answer := r.review(request.Body, leave)
	if code != http.StatusOK {
		http.Error(w, string(answer), code)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(answer); err != nil {
		r.log.Warn("an API server did not wait for the answer", zap.Error(err))
	}
}

// review answers a review in its turn, and then leaves.
func (r *reviewer) review(body io.Reader, leave func()) (code int, answer []byte) {
	defer leave()
	r.turns <- struct{}{}
	defer func() { <-r.turns }()
	asked := review{}
	err := json.NewDecoder(body).Decode(&asked)
	if err != nil || asked.Request == nil || asked.Kind != "AdmissionReview" || len(asked.Request.UID) > longestUID {
		return http.StatusBadRequest, []byte("the body must be an AdmissionReview with a request")
	}
	answer, err = json.Marshal(review{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview", Response: r.answer(asked.Request)})
	if err != nil {
		return http.StatusInternalServerError, []byte(err.Error())
	}
	return http.StatusOK, append(answer, '\n')
}

func (r *reviewer) answer(request *reviewRequest) *reviewResponse {
	answer, outcome, err := r.decide(request)
	answer.UID = request.UID
	r.metrics.reviews.WithLabelValues(outcome).Inc()
	r.log.Info("pod reviewed", zap.String("namespace", request.Namespace), zap.String("pod", nameOf(request.Object)),
		zap.String("outcome", outcome), zap.Error(err))
	return answer
}

// nameOf is a pod's name, or what its name will begin with.
func nameOf(object []byte) string {
	var pod struct {
		Metadata struct {
			Name         string `json:"name"`
			GenerateName string `json:"generateName"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(object, &pod) // what is no pod has no name
	return cmp.Or(pod.Metadata.Name, pod.Metadata.GenerateName)
}

// The outcomes of a review, by which the metric counts them.
const (
	injected  = "injected"
	unchanged = "unchanged"
	denied    = "denied"
	failed    = "failed"
)

var outcomes = []string{injected, unchanged, denied, failed}

func (r *reviewer) decide(request *reviewRequest) (answer *reviewResponse, outcome string, err error) {
	patch, warning, err := r.pattern.Patch(request.Object, request.Namespace, r.check)
	if refusal := (*Refusal)(nil); errors.As(err, &refusal) {
		return denial(http.StatusUnprocessableEntity, "Invalid", err), denied, err
	}
	if err != nil {
		return denial(http.StatusInternalServerError, "InternalError", err), failed, err
	}
	answer = &reviewResponse{Allowed: true}
	if warning != "" {
		answer.Warnings = []string{"sidekeeper: " + warning}
	}
	if patch == nil {
		return answer, unchanged, nil
	}
	answer.Patch, answer.PatchType = patch, "JSONPatch"
	return answer, injected, nil
}

func denial(code int, reason string, err error) *reviewResponse {
	return &reviewResponse{Status: &reviewStatus{Code: code, Reason: reason, Message: "sidekeeper: " + err.Error()}}
}

// Package controllers has no code: its tests run electors of client-go and a manager of controller-runtime under elections of a real sidecar.
// Module clients/go/k8s is without them, so that who imports that gets nothing of the sidecar's, nor controller-runtime.
package controllers

//go:build kube

package controllers

import (
	"context"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// last is the name of what is written when all others have.
const last = "last"

// longest is how long all of it may take.
const longest = 3 * time.Hour

// observe notes who has written for which election, in the API server's own order, until the function that it returns is called.
func observe(t *testing.T, kubeConfig string) (finish func() map[string][]string) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeConfig)
	must(t, err)
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	listed, err := client.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
	must(t, err)
	writers := map[string][]string{}
	var following sync.WaitGroup
	following.Go(func() {
		for version := listed.ResourceVersion; ctx.Err() == nil && writers[last] == nil; {
			version = follow(ctx, t, client, version, writers)
		}
	})
	return func() map[string][]string {
		defer cancel()
		_, err := client.CoreV1().ConfigMaps("default").Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: last}, Data: map[string]string{"writer": last}}, metav1.CreateOptions{})
		must(t, err)
		following.Wait()
		delete(writers, last)
		return writers
	}
}

// follow notes every version after one, and returns the newest when the API server ends the watch.
func follow(ctx context.Context, t *testing.T, client *kubernetes.Clientset, version string, writers map[string][]string) string {
	t.Helper()
	watched, err := client.CoreV1().ConfigMaps("default").Watch(ctx, metav1.ListOptions{ResourceVersion: version})
	if err != nil {
		if ctx.Err() == nil {
			t.Errorf("watch: %v", err)
		}
		return version
	}
	defer watched.Stop()
	for event := range watched.ResultChan() {
		object, isMap := event.Object.(*corev1.ConfigMap)
		if !isMap {
			t.Errorf("versions are missing: %v", event.Object)
			return version
		}
		version = object.ResourceVersion
		if writer := object.Data["writer"]; writer != "" {
			writers[object.Name] = append(writers[object.Name], writer)
		}
		if object.Name == last {
			return version
		}
	}
	return version
}

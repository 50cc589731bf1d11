// Command schemas writes the JSON schemas that the objects of the Helm chart are checked against, into a folder: from the
// OpenAPI document of Kubernetes and the resource definitions of the Prometheus operator, both as their Go modules carry
// them. Descriptions are left out, for they are most of the size; unknown fields are refused.
//
//	go run ./schemas ../../../test/deploy/schemas
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	kubernetes = "k8s.io/kubernetes@v1.37.1"
	operator   = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
)

// kinds lists the kinds that the chart uses, by file name.
var kinds = map[string]string{
	"configmap-v1":                  "io.k8s.api.core.v1.ConfigMap",
	"deployment-apps-v1":            "io.k8s.api.apps.v1.Deployment",
	"ingress-networking-v1":         "io.k8s.api.networking.v1.Ingress",
	"job-batch-v1":                  "io.k8s.api.batch.v1.Job",
	"networkpolicy-networking-v1":   "io.k8s.api.networking.v1.NetworkPolicy",
	"pod-v1":                        "io.k8s.api.core.v1.Pod",
	"poddisruptionbudget-policy-v1": "io.k8s.api.policy.v1.PodDisruptionBudget",
	"service-v1":                    "io.k8s.api.core.v1.Service",
	"serviceaccount-v1":             "io.k8s.api.core.v1.ServiceAccount",
}

var resources = map[string]string{
	"prometheusrule-monitoring-v1": "prometheusrules",
	"servicemonitor-monitoring-v1": "servicemonitors",
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: schemas FOLDER")
	}
	if err := write(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func write(folder string) error {
	var api struct{ Definitions map[string]any }
	text, err := moduleFile(kubernetes, "api/openapi-spec/swagger.json")
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &api); err != nil {
		return err
	}
	for file, kind := range kinds {
		used := map[string]any{}
		reach(api.Definitions, kind, used)
		root := maps.Clone(used[kind].(map[string]any))
		delete(used, kind)
		root["definitions"] = used
		if err := save(folder, file, root); err != nil {
			return err
		}
	}
	for file, name := range resources {
		text, err := moduleFile(operator, "example/prometheus-operator-crd/monitoring.coreos.com_"+name+".yaml")
		if err != nil {
			return err
		}
		var crd struct {
			Spec struct {
				Versions []struct {
					Schema struct {
						OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
					}
				}
			}
		}
		if err := yaml.Unmarshal(text, &crd); err != nil {
			return err
		}
		if err := save(folder, file, strict(crd.Spec.Versions[0].Schema.OpenAPIV3Schema).(map[string]any)); err != nil {
			return err
		}
	}
	return nil
}

// moduleFile reads a file of a module, which it downloads if necessary.
func moduleFile(module, path string) ([]byte, error) {
	out, err := exec.Command("go", "mod", "download", "-json", module).Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", module, err, out)
	}
	var at struct{ Dir string }
	if err := json.Unmarshal(out, &at); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(at.Dir, path))
}

// reach adds a definition and everything that it refers to.
func reach(all map[string]any, name string, used map[string]any) {
	if used[name] != nil {
		return
	}
	one := strict(all[name])
	used[name] = one
	text, _ := json.Marshal(one)
	for part := range strings.SplitSeq(string(text), `"#/definitions/`) {
		if next, _, ok := strings.Cut(part, `"`); ok && all[next] != nil {
			reach(all, next, used)
		}
	}
}

// strict removes descriptions and rejects unknown fields.
func strict(value any) any {
	switch v := value.(type) {
	case []any:
		for i := range v {
			v[i] = strict(v[i])
		}
	case map[string]any:
		if v["format"] == "int-or-string" || v["x-kubernetes-int-or-string"] == true {
			return map[string]any{"type": []any{"string", "integer"}}
		}
		properties, isObject := v["properties"].(map[string]any)
		for _, key := range slices.Collect(maps.Keys(v)) {
			if _, text := v[key].(string); key == "description" && text || strings.HasPrefix(key, "x-kubernetes-") {
				delete(v, key)
			}
		}
		for key := range v {
			if key != "properties" {
				v[key] = strict(v[key])
			}
		}
		for name := range properties { // by name: a field may itself be called description
			properties[name] = strict(properties[name])
		}
		if isObject && v["additionalProperties"] == nil {
			v["additionalProperties"] = false
		}
	}
	return value
}

func save(folder, name string, schema map[string]any) error {
	schema["$schema"] = "http://json-schema.org/draft-07/schema#"
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(schema); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, name+".json"), text.Bytes(), 0o644)
}

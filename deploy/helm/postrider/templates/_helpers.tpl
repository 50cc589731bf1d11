{{- define "postrider.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- define "postrider.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "postrider.labels" -}}
{{ include "postrider.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "postrider.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else }}{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{- define "postrider.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ default (include "postrider.fullname" .) .Values.serviceAccount.name }}
{{- else }}{{ default "default" .Values.serviceAccount.name }}
{{- end -}}
{{- end -}}

{{- define "postrider.configMap" -}}
{{- default (include "postrider.fullname" .) .Values.existingConfigMap -}}
{{- end -}}

{{/* Here and not in values.yaml, where Helm would merge it with the values of the user. */}}
{{- define "postrider.defaultConfig" -}}
databases: {app: {url: "${file:/run/secrets/postrider/database-url}"}}
destinations: {events: {url: "${file:/run/secrets/postrider/broker-url}"}}
feeds: {default: {}}
{{- end -}}

{{/* The configuration file: the values, with the chart's ports and drain timeout. */}}
{{- define "postrider.config" -}}
{{- $config := deepCopy (default (include "postrider.defaultConfig" . | fromYaml) .Values.config) -}}
{{- $_ := set $config "health" (dict "listen" (printf "0.0.0.0:%v" .Values.health.port) "token" .Values.health.token) -}}
{{- if .Values.console.enabled -}}
{{- $console := default dict $config.console -}}
{{- if not (or $console.tokens $console.oidc $console.proxy) -}}
{{- fail "console.enabled: other machines could call the console, so config.console needs tokens, oidc or proxy" -}}
{{- end -}}
{{- $_ := set $config "console" (merge (dict "listen" (printf "0.0.0.0:%v" .Values.console.port)) $console) -}}
{{- else -}}
{{- $_ := unset $config "console" -}}
{{- end -}}
{{- $drain := dict "drain_timeout" (printf "%vs" .Values.drainTimeoutSeconds) -}}
{{- range $name, $feed := $config.feeds -}}
{{- $feed := default dict $feed -}}
{{- if (default dict $feed.relay).drain_timeout -}}
{{- fail (printf "config.feeds.%s.relay.drain_timeout: say drainTimeoutSeconds instead, which also gives pods the time" $name) -}}
{{- end -}}
{{- $_ := set $feed "relay" (merge (dict) $drain (default dict $feed.relay)) -}}
{{- $_ := set $config.feeds $name $feed -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* Satisfies the restricted profile of the pod security standards. */}}
{{- define "postrider.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "postrider.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "postrider.mounts" -}}
- {name: config, mountPath: /etc/postrider, readOnly: true}
- {name: secrets, mountPath: /run/secrets/postrider, readOnly: true}
{{- end -}}

{{- define "postrider.volumes" -}}
- name: config
  configMap: {name: {{ include "postrider.configMap" . }}}
- name: secrets
  secret: {secretName: {{ .Values.secret.name }}, defaultMode: 0440}
{{- end -}}

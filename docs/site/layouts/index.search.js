{{- /* What the search reads: each section of each page, and where it is. */ -}}
{{- $sections := slice -}}
{{- range partialCached "navigation.html" . -}}
  {{- $page := .page -}}
  {{- $title := "" -}}
  {{- range $i, $part := split (replaceRE `<h([1-3]) id=` "\x00<h$1 id=" $page.Content) "\x00" -}}
    {{- $heading := index (findRESubmatch `(?s)<h[1-3] id="([^"]*)">(.*?)</h[1-3]>` $part 1) 0 -}}
    {{- if $heading -}}
      {{- $name := index $heading 2 | plainify | htmlUnescape -}}
      {{- if not $title }}{{ $title = $name }}{{ end -}}
      {{- $address := strings.TrimPrefix "/" $page.RelPermalink -}}
      {{- if gt $i 1 }}{{ $address = printf "%s#%s" $address (index $heading 1) }}{{ end -}}
      {{- $text := strings.TrimPrefix (index $heading 0) $part | plainify | htmlUnescape -}}
      {{- $sections = $sections | append (dict "page" $title "heading" $name "address" $address "text" (replaceRE `\s+` " " $text)) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
searchIndex({{ $sections | jsonify }});

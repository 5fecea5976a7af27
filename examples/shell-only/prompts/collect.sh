# Lists the text files of the repository.
find . -name '*.md' -not -path './.*' | sort > files.txt
printf '{"status": "COMPLETED", "artifacts": ["files.txt"]}' > "$REPORT_PATH"

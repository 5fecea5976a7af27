// Before the first paint: the theme that was chosen here, or none, and then the system's.
try {
  const chosen = localStorage.getItem("orc.theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
} catch { /* Storage is closed: the system's theme it is. */ }

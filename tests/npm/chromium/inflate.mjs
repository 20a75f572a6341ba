// Inflate Chromium, its libraries and its letters into $TMPDIR, where they then stay.
import chromium from "@sparticuz/chromium";

await chromium.executablePath();

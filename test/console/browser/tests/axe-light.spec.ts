import { examine } from "../axe.ts";

examine("light");

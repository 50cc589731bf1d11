import { examine } from "../axe.ts";

examine("dark");

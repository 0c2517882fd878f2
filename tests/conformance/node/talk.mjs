// What a script is asked comes as JSON on its standard input; what it found out is one line of JSON.
import { text } from "node:stream/consumers";

export const asked = async () => JSON.parse(await text(process.stdin));
export const told = (found) => console.log(JSON.stringify(found));
